/**
 * Calls from a web page to an agent of Sayback.
 *
 * One module, nothing to build, nothing to install:
 *
 *     import { connect } from "/sayback.js";
 *     const call = await connect({ agent: "clinic" });
 *     call.on("event", (line) => console.log(line.event));
 *     call.on("ended", ({ reason }) => console.log("over:", reason));
 *
 * The page's sound goes over WebRTC, and so does what the page tells the server: which of the agent's samples was heard
 * when. A yes only counts behind a question that was heard, so a page that cannot tell is a page whose callers are
 * asked again; docs/webrtc.md says how it is measured.
 *
 * @module sayback
 */

/** Between two looks at what is playing, and between two reports of it, in milliseconds. */
const LOOK = 25;
const REPORT = 100;
/** Looks that a report is made of: half a second. */
const LOOKS = 20;
/** How long sound takes to a loudspeaker that nothing is known of. */
const SLOW = 150;
/** Candidates are waited for this long before the offer is sent; the others follow it. */
const GATHER = 400;
/** A connection that is not there by then is given up. */
const CONNECT = 20_000;
/** A connection that breaks is looked for anew for this long, and then given up; the server waits for 45 seconds. */
const RECONNECT = 40_000;
/** The server is asked again if its answer has not come by then: it may have been lost with the network. */
const ANSWER = 5_000;

/**
 * Why a call could not be made.
 *
 * `code` is one of `microphone-denied`, `microphone-missing`, `insecure` (a page that may not use the microphone),
 * `unreachable` (no answer from the server), `no-connection` (an answer, and no way for sound), or the last part of a
 * problem's `type` as the server names it: `no-token`, `no-such-agent`, `full`, `draining`, ...
 */
export class CallError extends Error {
  /**
   * @param {string} code
   * @param {string} message
   * @param {number} [status] of HTTP, where the server said no
   */
  constructor(code, message, status) {
    super(message);
    this.name = "CallError";
    this.code = code;
    this.status = status;
  }
}

/**
 * Calls an agent. Resolves once sound can flow both ways.
 *
 * @param {object} [options]
 * @param {string} [options.url] of the server; default: where this page comes from
 * @param {string} [options.token] with the role `call`; none is needed on loopback
 * @param {string} [options.agent] who is called, by a name of `[agents]`; default: `*`
 * @param {RTCIceServer[]} [options.iceServers] STUN and TURN servers; default: none
 * @param {boolean} [options.relayOnly] use TURN servers only
 * @param {MediaStream} [options.stream] sound of the caller's instead of the microphone; the call does not stop it
 * @param {HTMLMediaElement} [options.audio] where the agent sounds; default: an element of the call's own
 * @param {AbortSignal} [options.signal] gives up while connecting, hangs up later
 * @returns {Promise<Call>}
 */
export async function connect(options = {}) {
  options.signal?.throwIfAborted();
  const call = new Call(options);
  try {
    await call._open();
  } catch (error) {
    call._end(options.signal?.aborted ? "hung-up" : "failed", String(error.message ?? error));
    throw error;
  }
  return call;
}

/**
 * A call.
 *
 * Events (`call.on(name, listener)`, or `addEventListener`, where `detail` holds the same):
 *
 * | name | what comes with it |
 * |---|---|
 * | `state` | `connecting`, `live`, `reconnecting` or `ended` |
 * | `event` | a line of the event log that callers may see: `{ t_ms, event, ... }` |
 * | `muted` | whether the microphone is muted |
 * | `ended` | `{ reason, detail }`; reason: `hung-up` (here), `agent` (there), `lost`, `failed` |
 */
export class Call extends EventTarget {
  constructor(options) {
    super();
    /** The call's id, as `/v1/calls` has it. @type {string | null} */
    this.id = null;
    /** @type {"connecting" | "live" | "reconnecting" | "ended"} */
    this.state = "connecting";
    /** Whether the microphone is muted. Change it with `mute`. */
    this.muted = false;
    /** The caller's sound. @type {MediaStream | null} */
    this.local = null;
    /** The agent's sound. @type {MediaStream | null} */
    this.remote = null;
    /** What was told to the server last about what was heard: for tests and the curious. @type {object | null} */
    this.report = null;
    /** How the call ended. @type {{ reason: string, detail: string } | null} */
    this.ended = null;
    this._options = options;
    this._candidates = [];
    this._timers = [];
    this._agentEnded = null;
  }

  /**
   * Listens to an event; gives a function that stops it.
   *
   * @param {"state" | "event" | "muted" | "ended"} name
   * @param {(detail: any) => void} listener
   * @returns {() => void}
   */
  on(name, listener) {
    const heard = (event) => listener(event.detail);
    this.addEventListener(name, heard);
    return () => this.removeEventListener(name, heard);
  }

  /** Mutes the microphone, or opens it again. The agent is still heard. @param {boolean} muted */
  mute(muted = true) {
    this.muted = muted;
    for (const track of this.local?.getAudioTracks() ?? []) track.enabled = !muted;
    this._tell("muted", muted);
  }

  /** Presses keys: `0`-`9`, `*`, `#`, `A`-`D`. @param {string} digits */
  press(digits) {
    if (!/^[0-9*#A-D]+$/i.test(digits)) throw new CallError("bad-digits", `not keys: ${digits}`);
    const dtmf = this._sender?.dtmf;
    if (!dtmf?.canInsertDTMF) throw new CallError("no-keys", "this call takes no keys");
    dtmf.insertDTMF(dtmf.toneBuffer + digits, 120, 70);
  }

  /** Hangs up. Resolves when the server knows; the call is over at once. @returns {Promise<void>} */
  async hangUp() {
    const over = this._delete();
    this._end("hung-up", "");
    await over;
  }

  async _open() {
    const { iceServers = [], relayOnly = false, signal } = this._options;
    this.local = this._options.stream ?? (await microphone());
    signal?.throwIfAborted();
    const peer = new RTCPeerConnection({
      iceServers,
      iceTransportPolicy: relayOnly ? "relay" : "all",
      bundlePolicy: "max-bundle",
    });
    this._peer = peer;
    const [track] = this.local.getAudioTracks();
    this._sender = peer.addTrack(track, this.local);
    this._channel = peer.createDataChannel("sayback");
    this._channel.onopen = () => this._hello();
    this._channel.onmessage = (message) => this._heard(message.data);
    peer.ontrack = (event) => this._play(event);
    peer.onicecandidate = (event) => this._candidate(event.candidate);
    await peer.setLocalDescription(await peer.createOffer());
    await this._gathered();
    const live = this._connected();
    live.catch(() => {});
    await this._offer();
    await live;
    signal?.addEventListener("abort", () => this.hangUp(), { once: true });
    window.addEventListener("pagehide", (this._leave = () => this.hangUp()));
    peer.onconnectionstatechange = () => this._moved();
    this._become("live");
  }

  /** Waits until the candidates are there, or long enough. */
  async _gathered() {
    const peer = this._peer;
    if (peer.iceGatheringState === "complete") return;
    await Promise.race([
      pause(GATHER),
      new Promise((done) => {
        peer.addEventListener("icegatheringstatechange", () => peer.iceGatheringState === "complete" && done());
      }),
    ]);
  }

  async _offer() {
    const { agent, signal } = this._options;
    const base = new URL(this._options.url ?? "/", window.location.href);
    const address = new URL("/v1/webrtc", base);
    if (agent) address.searchParams.set("agent", agent);
    const sdp = withResending(this._peer.localDescription.sdp);
    this._sent = candidatesOf(sdp);
    const response = await this._ask(address, { method: "POST", body: sdp, signal }, "application/sdp");
    this._resource = new URL(response.headers.get("location"), address);
    this._etag = response.headers.get("etag");
    this.id = decodeURIComponent(this._resource.pathname.split("/").pop());
    await this._peer.setRemoteDescription({ type: "answer", sdp: await response.text() });
    this._flush();
  }

  /** Asks the server; what is no success is an error that says why. */
  async _ask(address, request, type) {
    const headers = { "content-type": type, ...request.headers };
    if (this._options.token) headers.authorization = `Bearer ${this._options.token}`;
    let response;
    try {
      response = await fetch(address, { ...request, headers });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new CallError("unreachable", `no answer from ${address.origin}`);
    }
    if (response.ok) return response;
    const problem = await response.json().catch(() => ({}));
    const code = String(problem.type ?? "").split(":").pop() || `http-${response.status}`;
    throw new CallError(code, problem.detail ?? response.statusText, response.status);
  }

  _connected() {
    const peer = this._peer;
    return new Promise((done, fail) => {
      const no = () => fail(new CallError("no-connection", "no way was found for the sound"));
      const timer = setTimeout(no, CONNECT);
      peer.onconnectionstatechange = () => {
        if (peer.connectionState === "connected") done(clearTimeout(timer));
        if (peer.connectionState === "failed") no(clearTimeout(timer));
      };
      this._options.signal?.addEventListener("abort", () => fail(this._options.signal.reason), { once: true });
    });
  }

  /** The connection is another than before. */
  _moved() {
    const state = this._peer.connectionState;
    if (state === "connected") this._become("live");
    if (state === "closed") this._gone();
    if (state === "disconnected" || state === "failed") this._restart();
  }

  /** Looks for the way anew: the network may be another one. */
  async _restart() {
    if (this.ended || this._restarting) return;
    if (this._agentEnded) return this._gone();
    this._become("reconnecting");
    this._restarting = true;
    const until = performance.now() + RECONNECT;
    try {
      while (!this.ended && this._peer.connectionState !== "connected" && performance.now() < until) {
        if (await this._restartOnce()) await this._settled();
      }
    } finally {
      this._restarting = false;
    }
    if (!this.ended && this._peer.connectionState !== "connected") this._gone();
  }

  /** Whether the server took it. */
  async _restartOnce() {
    const peer = this._peer;
    // Candidates of a session that the server does not know yet go with the request for it.
    this._etag = null;
    try {
      if (peer.signalingState === "stable") {
        await peer.setLocalDescription(await peer.createOffer({ iceRestart: true }));
      }
      await this._gathered();
      const sdp = peer.localDescription.sdp;
      this._sent = candidatesOf(sdp);
      const request = { method: "PATCH", body: fragmentOf(sdp, this._sent), headers: { "if-match": "*" }, signal: AbortSignal.timeout(ANSWER) };
      const response = await this._ask(this._resource, request, FRAGMENT);
      this._etag = response.headers.get("etag");
      const answer = answerWith(peer.currentRemoteDescription.sdp, await response.text());
      await peer.setRemoteDescription({ type: "answer", sdp: answer });
      this._flush();
      return true;
    } catch (error) {
      // A call that the server no longer has is over; anything else may pass.
      if (error.status === 404) this._gone();
      await pause(1_000);
      return false;
    }
  }

  /** Waits until a restarted connection is there, or long enough. */
  async _settled() {
    for (let waited = 0; waited < 6_000 && !this.ended; waited += 100) {
      if (this._peer.connectionState === "connected") return;
      await pause(100);
    }
  }

  _candidate(candidate) {
    if (!candidate?.candidate) return;
    this._candidates.push(candidate.candidate);
    if (this._etag) this._flush();
  }

  /** Sends the candidates that came after the offer. */
  async _flush() {
    const late = this._candidates.filter((candidate) => !this._sent.includes(candidate));
    this._candidates = [];
    if (!late.length || !this._resource) return;
    const body = fragmentOf(this._peer.localDescription.sdp, late);
    const request = { method: "PATCH", body, headers: { "if-match": this._etag } };
    // A candidate that is lost may be missed; the call says so itself if it is.
    await this._ask(this._resource, request, FRAGMENT).catch(() => {});
  }

  _play({ receiver, streams, track }) {
    this.remote = streams[0] ?? new MediaStream([track]);
    this._receiver = receiver;
    const audio = this._options.audio ?? new Audio();
    this._audio = audio;
    audio.autoplay = true;
    audio.srcObject = this.remote;
    audio.play?.().catch(() => {});
  }

  /** The data channel is open: what this page can tell is announced, and told from now on. */
  _hello() {
    this._send({ type: "hello", version: 1, reports: Boolean(this._receiver?.getSynchronizationSources) });
    // Nothing sounds through it: it knows how long the way to the loudspeaker is.
    this._output = new AudioContext({ latencyHint: "interactive" });
    this._looks = [];
    this._timers.push(setInterval(() => this._look(), LOOK));
    this._timers.push(setInterval(() => this._tellHeard(), REPORT));
  }

  /** Which of the agent's samples went to the loudspeaker when. */
  _look() {
    const [source] = this._receiver?.getSynchronizationSources() ?? [];
    if (!source || !this._rate) return;
    // Told in time since 1970 by some, since the page began by others.
    const at = source.timestamp > 1e11 ? source.timestamp - performance.timeOrigin : source.timestamp;
    this._first ??= source.rtpTimestamp;
    const played = (((source.rtpTimestamp - this._first) | 0) * 1_000) / this._rate;
    this._looks.push({ rtp: source.rtpTimestamp, played, offset: at - played, at });
    if (this._looks.length > LOOKS) this._looks.shift();
  }

  async _tellHeard() {
    const last = this._looks.at(-1);
    if (!last || this._channel.readyState !== "open") return;
    const offsets = this._looks.map((look) => look.offset);
    const least = Math.min(...offsets);
    const stats = await this._receiver.getStats();
    const inbound = [...stats.values()].find((entry) => entry.type === "inbound-rtp");
    // A browser that does not know how long its loudspeaker takes is taken for a slow one: later is the safe side.
    const output = this._output.outputLatency > 0 ? this._output.outputLatency * 1_000 : SLOW;
    const microphone = (this.local.getAudioTracks()[0]?.getSettings().latency ?? 0) * 1_000;
    this.report = {
      type: "played",
      at: performance.now(),
      rtp: last.rtp,
      heard: last.played + least + output,
      spread: Math.max(...offsets) - least,
      output,
      microphone,
      concealed: ((inbound?.concealedSamples ?? 0) * 1_000) / this._rate,
    };
    if (this._channel.readyState === "open") this._send(this.report);
  }

  /** The server says something. */
  _heard(text) {
    let message;
    try {
      message = JSON.parse(text);
    } catch {
      return;
    }
    if (message.type === "welcome") this._rate = message.clock_rate;
    if (message.type !== "event") return;
    if (message.line?.event === "call.ended") this._agentEnded = message.line.reason ?? "";
    this._tell("event", message.line);
  }

  _send(message) {
    this._channel.send(JSON.stringify(message));
  }

  _gone() {
    if (this._agentEnded === null) this._end("lost", "the connection broke");
    else this._end("agent", this._agentEnded);
  }

  async _delete() {
    if (!this._resource) return;
    const resource = this._resource;
    this._resource = null;
    // Goes through even if the page is left meanwhile.
    await this._ask(resource, { method: "DELETE", keepalive: true }, FRAGMENT).catch(() => {});
  }

  _end(reason, detail) {
    if (this.ended) return;
    this.ended = { reason, detail };
    for (const timer of this._timers) clearInterval(timer);
    if (this._leave) window.removeEventListener("pagehide", this._leave);
    if (reason !== "hung-up") this._delete();
    if (!this._options.stream) this.local?.getTracks().forEach((track) => track.stop());
    this._peer?.close();
    this._output?.close().catch(() => {});
    if (this._audio) this._audio.srcObject = null;
    this._become("ended");
    this._tell("ended", this.ended);
  }

  _become(state) {
    if (this.state === state || this.state === "ended") return;
    this.state = state;
    this._tell("state", state);
  }

  _tell(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { detail }));
  }
}

const FRAGMENT = "application/trickle-ice-sdpfrag";

/** The microphone, with what keeps the agent from hearing itself. */
async function microphone() {
  if (!navigator.mediaDevices?.getUserMedia) {
    throw new CallError("insecure", "the microphone is only there for pages over https, and on localhost");
  }
  try {
    return await navigator.mediaDevices.getUserMedia({
      audio: { echoCancellation: true, noiseSuppression: true, autoGainControl: true },
    });
  } catch (error) {
    const denied = error.name === "NotAllowedError" || error.name === "SecurityError";
    if (denied) throw new CallError("microphone-denied", "the page may not use the microphone");
    throw new CallError("microphone-missing", `no microphone: ${error.message}`);
  }
}

function pause(ms) {
  return new Promise((done) => setTimeout(done, ms));
}

function candidatesOf(sdp) {
  return lines(sdp).filter((line) => line.startsWith("a=candidate:")).map((line) => line.slice(2));
}

/** An offer that says that lost sound may be asked for again (NACK): browsers can, and do not offer it for sound. */
function withResending(sdp) {
  return sdp.replace(/a=rtpmap:(\d+) opus\/48000\/2\r\n/i, (line, type) => `${line}a=rtcp-fb:${type} nack\r\n`);
}

/** Candidates as RFC 8840 writes them. */
function fragmentOf(sdp, candidates) {
  const all = lines(sdp);
  const first = (start) => all.find((line) => line.startsWith(start)) ?? "";
  const head = [first("a=ice-ufrag:"), first("a=ice-pwd:"), first("m=audio"), first("a=mid:")];
  return [...head, ...candidates.map((candidate) => `a=${candidate}`), ""].join("\r\n");
}

/** The answer so far, with the names and candidates of a fragment in place of its own. */
function answerWith(sdp, fragment) {
  const fresh = lines(fragment);
  const kept = lines(sdp).filter((line) => !/^a=(candidate:|end-of-candidates)/.test(line));
  const named = kept.map((line) => {
    const name = /^a=(ice-ufrag|ice-pwd):/.exec(line);
    return name ? (fresh.find((other) => other.startsWith(name[0])) ?? line) : line;
  });
  const at = named.findIndex((line) => line.startsWith("a=mid:"));
  named.splice(at + 1, 0, ...candidatesOf(fragment).map((candidate) => `a=${candidate}`));
  return [...named, ""].join("\r\n");
}

function lines(text) {
  return text.split(/\r?\n/).filter(Boolean);
}
