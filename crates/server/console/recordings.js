// Recorded calls: their sound, their timeline, what was decided and why.

import { get, send, text, token } from "./api.js";
import { waiting } from "./banner.js";
import { stages } from "./calls.js";
import { clock, h, length, moment, put, say, tell } from "./dom.js";
import { logTable } from "./log.js";
import { Story, asks, logLines, reason, words } from "./story.js";
import { Timeline } from "./timeline.js";

/** Sound up to this length is drawn as a wave; more would take long to decode. */
const DRAWN = 20 * 60_000;
/** Peaks in a second. */
const RATE = 200;

const address = (id) => `/v1/recordings/${encodeURIComponent(id)}`;

/** The list. */
export async function recordingsPage(main, { signal }) {
  let answer;
  try {
    answer = await get("/v1/recordings", signal);
  } catch (error) {
    if (error.type !== "no-recordings") throw error;
    put(main, h("h1", {}, "Recordings"), h("section", { class: "card" }, h("p", { class: "empty" }, "Calls are not recorded here. Add a [record] table to the server's file, and record = true under [privacy] of an agent.")));
    return;
  }
  const { recordings, older, away } = answer;
  const rows = recordings.map((one) => h("li", {}, h("a", { href: `#/recordings/${encodeURIComponent(one.id)}` },
    h("span", { class: `dot ${one.sealed ? "good" : ""}`, "aria-hidden": "true" }),
    h("span", { class: "name" }, one.agent),
    h("span", { class: "dim" }, [one.length_ms === null ? "" : clock(one.length_ms), one.transport, one.sound ? "with sound" : "no sound", one.sealed ? "" : "not finished"].filter(Boolean).join(" · ")),
    h("span", { class: "dim side" }, moment(new Date(one.start))))));
  put(main, h("h1", {}, "Recordings"), away ? h("p", { class: "dim", role: "status" }, `Only the newest are shown: the place where the others are cannot be reached (${away}). Nothing is lost.`) : null,
    h("section", { class: "card", "aria-label": "Recorded calls" },
    rows.length > 0 ? h("ul", { class: "rows" }, rows) : h("p", { class: "empty" }, "No recorded calls yet."),
    older > 0 ? h("p", { class: "dim" }, `and ${older} older ones`) : null));
}

const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1);

/** What became of each question, as the page of a recorded call says it. */
function verdicts(story) {
  return story.questions.map((one) => {
    const answer = one.answers.at(-1);
    const [tone, mark, title] = one.ran
      ? ["good", "✓", `Done: ${words(one.tool)}. The caller said “${one.ran.by}”${answer ? ` ${length(answer.margin)} after the question had been heard` : ""}.`]
      : one.dropped ? ["bad", "✗", `Not done: ${words(one.tool)}. ${sentence(reason(one.dropped.reason))}.`]
        : ["ask", "?", `Left open: ${words(one.tool)}.`];
    return h("div", { class: `banner ${tone}` }, h("span", { class: "mark", "aria-hidden": "true" }, mark),
      h("div", {}, h("p", { class: "title" }, title), h("p", { class: "detail" }, `Asked: ${asks(one)}`)));
  });
}

const ms = (value) => (typeof value === "number" ? clock(value) : "–");

/** The evidence of one decision: why it was a yes. */
function decision(line) {
  const clockOf = line.clock ?? {};
  const answer = line.answer ?? {};
  const check = line.check ?? {};
  const rows = [
    ["Decision", [line.decision, line.outcome].filter(Boolean).map(words).join(", ")],
    ["Question", line.question],
    ["Heard", clockOf.horizon_ms === undefined ? "–" : `by ${ms(clockOf.horizon_ms)}, known by ${clockOf.source ?? "–"}`],
    ["Answer", !answer.words ? "–" : `“${answer.words}”${typeof answer.margin_ms === "number" ? `, ${length(answer.margin_ms)} after the question` : ""}`],
    ["Check", check.veto ? `veto: ${words(check.veto)}` : [check.verdict, check.model].filter(Boolean).map(String).join(" by ") || "–"],
    ["Input", line.input === undefined ? "–" : typeof line.input === "string" ? line.input : JSON.stringify(line.input)],
    ["Line's hash", line.hash],
  ];
  return h("details", {}, h("summary", {}, `${words(line.tool)}: ${words(line.outcome ?? line.decision ?? line.kind)}`),
    h("dl", { class: "facts" }, rows.filter(([, value]) => value !== undefined && value !== "").map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, String(value))))),
    h("details", { class: "whole" }, h("summary", {}, "The whole line"), h("pre", { tabindex: 0, "aria-label": "The whole line of evidence" }, JSON.stringify(line, null, 2))));
}

function evidenceCard(lines) {
  const seal = lines.find((line) => line.kind === "seal");
  const decided = lines.filter((line) => line.tool);
  return h("section", { class: "card evidence", "aria-label": "Evidence" }, h("h2", {}, "Evidence"),
    decided.length > 0 ? decided.map(decision) : h("p", { class: "dim" }, "Nothing was decided in this call."),
    h("p", { class: "dim last" }, seal ? ["Sealed ", h("code", {}, String(seal.hash).slice(0, 23), "…"), ". ", h("code", {}, "sayback verify"), " checks it."] : "Not sealed: the recording was not finished."));
}

/** The highest level in each piece of a channel. */
function peaks(samples, rate) {
  const step = rate / RATE;
  const found = new Float32Array(Math.ceil(samples.length / step));
  for (let at = 0; at < samples.length; at += 1) {
    const piece = Math.floor(at / step);
    found[piece] = Math.max(found[piece], Math.abs(samples[at]));
  }
  return found;
}

async function soundOf(id, signal) {
  return (await send("GET", `${address(id)}/audio`, { signal })).arrayBuffer();
}

/** The player and, for a call that is not too long, the wave. */
async function sound(one, line, signal) {
  const player = h("audio", { controls: true, preload: "metadata", "aria-label": "The call: caller left, agent right" });
  const bytes = token.get() || one.length_ms < DRAWN ? await soundOf(one.id, signal) : null;
  if (token.get()) {
    const url = URL.createObjectURL(new Blob([bytes], { type: "audio/flac" }));
    player.src = url;
    signal.addEventListener("abort", () => URL.revokeObjectURL(url));
  } else {
    player.src = `${address(one.id)}/audio`;
  }
  if (bytes && one.length_ms < DRAWN) {
    const decoded = await new OfflineAudioContext(2, 1, 16_000).decodeAudioData(bytes).catch(() => null);
    if (decoded && decoded.numberOfChannels > 1) {
      line.peaks = { rate: RATE, caller: peaks(decoded.getChannelData(0), decoded.sampleRate), agent: peaks(decoded.getChannelData(1), decoded.sampleRate) };
      line.length = decoded.duration * 1000;
    }
  }
  return player;
}

async function saveScenario(id) {
  try {
    const told = await (await send("POST", `${address(id)}/scenario`)).text();
    const url = URL.createObjectURL(new Blob([told], { type: "application/toml" }));
    const link = h("a", { href: url, download: `${id}.call.toml` });
    link.click();
    setTimeout(() => URL.revokeObjectURL(url), 1_000);
    tell("Saved. Look it over, then run it with: sayback replay");
  } catch (error) {
    tell(`No scenario: ${error.message}`, "bad");
  }
}

/** One recorded call. */
export async function recordingPage(main, { id, signal }) {
  const one = await get(address(id), signal);
  const [events, evidence] = await Promise.all(["events", "evidence"].map((part) => text(`${address(id)}/${part}`, signal).catch(() => "")));
  if (signal.aborted) return;
  const story = new Story();
  let player = null;
  const seek = (at) => {
    if (!player) return;
    player.currentTime = at / 1000;
    line.play(at);
  };
  const line = new Timeline({ live: false, seek });
  const log = logTable("What happened", one.sound ? seek : null);
  for (const event of logLines(events)) {
    story.take(event);
    log.add(event);
  }
  const took = stages();
  took.show(story);
  const place = h("div", {}, one.sound ? h("p", { class: "dim" }, "The sound is being read…") : null);
  const [, ended, how] = waiting(story, { live: Boolean(story.ended) });
  put(main, h("p", { class: "back" }, h("a", { href: "#/recordings" }, "All recordings")), h("h1", {}, one.agent),
    h("p", { class: "meta" }, [clock(one.length_ms ?? story.end), one.transport, moment(new Date(one.start)), how || ended].join(" · "), " · ", h("code", {}, one.call)),
    verdicts(story), line.root, place,
    h("p", { class: "line" }, h("button", { type: "button", on: { click: () => saveScenario(id) } }, "Save as scenario"), h("span", { class: "dim" }, "A test that decides this call again. Personal details are replaced.")),
    h("div", { class: "columns" }, log.root, h("div", {}, took.root, evidenceCard(logLines(evidence)))));
  line.show(story);
  signal.addEventListener("abort", () => line.close());
  if (!one.sound) return;
  try {
    player = await sound(one, line, signal);
    if (signal.aborted) return player.removeAttribute("src");
    line.root.classList.add("playable");
    player.addEventListener("timeupdate", () => line.play(player.currentTime * 1000));
    put(place, player);
    line.draw();
    signal.addEventListener("abort", () => player.pause());
  } catch (error) {
    if (!signal.aborted) say(place.firstElementChild, `The sound cannot be played: ${error.message}`);
  }
}
