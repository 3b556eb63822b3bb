// Requests to this server and to no other, with the token if there is one.

const KEPT = "sayback.token";

/** What the server answered instead of what was asked for. */
export class Problem extends Error {
  constructor(status, type, detail) {
    super(detail);
    this.status = status;
    this.type = type;
  }
}

/** The token, which lives as long as this tab. */
export const token = {
  get: () => sessionStorage.getItem(KEPT) ?? "",
  set: (value) => (value ? sessionStorage.setItem(KEPT, value) : sessionStorage.removeItem(KEPT)),
};

/** Called when the server wants a token, or another one. */
export const wants = { token: () => {} };

async function refused(response) {
  let body = {};
  try {
    body = await response.json();
  } catch {
    // A proxy in between answers as it likes.
  }
  const type = String(body.type ?? "").replace("urn:sayback:", "");
  const problem = new Problem(response.status, type, body.detail ?? `the server answered ${response.status}`);
  if (response.status === 401) wants.token(problem);
  return problem;
}

/** Sends a request; throws a `Problem` for every answer that is not 2xx. */
export async function send(method, path, { json, headers, signal, keepalive } = {}) {
  const all = new Headers(headers);
  if (token.get()) all.set("authorization", `Bearer ${token.get()}`);
  if (json !== undefined) all.set("content-type", "application/json");
  const body = json === undefined ? undefined : JSON.stringify(json);
  let response;
  try {
    response = await fetch(path, { method, headers: all, body, signal, keepalive, cache: "no-store" });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Problem(0, "unreachable", "the server cannot be reached");
  }
  if (!response.ok) throw await refused(response);
  return response;
}

export const get = async (path, signal) => (await send("GET", path, { signal })).json();
export const text = async (path, signal) => (await send("GET", path, { signal })).text();
export const post = async (path, json) => {
  const response = await send("POST", path, { json });
  return (response.headers.get("content-type") ?? "").includes("json") ? response.json() : null;
};

/** One line of server-sent events at a time. */
function* messages(block) {
  const message = { id: null, event: "message", data: [] };
  for (const line of block.split(/\r\n|\r|\n/)) {
    const colon = line.indexOf(":");
    if (colon < 1) continue;
    const field = line.slice(0, colon);
    const value = line.slice(colon + 1).replace(/^ /, "");
    if (field === "data") message.data.push(value);
    else if (field === "id" || field === "event") message[field] = value;
  }
  if (message.data.length > 0) yield { ...message, data: message.data.join("\n") };
}

async function read(path, last, take, signal) {
  const headers = last.id === null ? {} : { "last-event-id": last.id };
  const response = await send("GET", path, { headers, signal });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    rest += value;
    const blocks = rest.split(/\r?\n\r?\n/);
    rest = blocks.pop();
    for (const message of blocks.flatMap((block) => [...messages(block)])) {
      if (message.id !== null) last.id = message.id;
      take(message);
    }
  }
}

const pause = (ms, signal) =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true });
  });

/**
 * Follows a call's events to their end, and goes on where it was when the connection breaks. An `EventSource` cannot
 * send a token. `lost(true)` while it is not connected.
 */
export async function follow(path, take, lost, signal) {
  const last = { id: null };
  for (let tries = 0; !signal.aborted; tries += 1) {
    try {
      await read(path, last, (message) => {
        tries = 0;
        lost(false);
        take(message);
      }, signal);
      return;
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof Problem && error.status >= 400 && error.status < 500 && error.status !== 429) throw error;
      lost(true);
      await pause(Math.min(8_000, 500 * 2 ** tries), signal);
    }
  }
}
