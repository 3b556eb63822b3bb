// Calls: those that go on, one of them live, and a call from this page.

import { follow, get, post, send, token } from "./api.js";
import { banner } from "./banner.js";
import { clock, h, length, moment, put, say, tell } from "./dom.js";
import { logTable } from "./log.js";
import { Story, asks, figures, words } from "./story.js";
import { Timeline } from "./timeline.js";

/** Names of the stages, in the order in which an answer passes them. */
const STAGES = [
  ["words", "Recognition", "from the end of speech to its words"],
  ["turn", "End of turn", "from the end of speech to the turn being over"],
  ["model", "Model", "from the end of the turn to the first sentence"],
  ["voice", "Voice", "from that sentence to its first sound"],
  ["response", "Whole answer", "from the end of speech to the agent's first sound"],
  ["check", "Check of a yes", "from the end of the answer to the verdict"],
  ["tool", "Tools", "from start to result"],
];

/** The time that each stage took; of a conversation in text, those that it has. */
export function stages({ sound = true } = {}) {
  const shown = STAGES.filter(([key]) => sound || ["model", "check", "tool"].includes(key));
  const body = h("dl", { class: "stages" });
  return {
    root: h("section", { class: "card", "aria-label": "Time per stage" }, h("h2", {}, "Time per stage ", h("small", {}, "median · last")), body),
    show(story) {
      put(body, shown.map(([key, name, meaning]) => {
        const found = figures(story.stages[key]);
        const value = found ? [h("b", {}, length(found.median)), ` · ${length(found.last)}`] : "–";
        return h("div", { class: key === "response" ? "main" : "" }, h("dt", { title: meaning }, name), h("dd", {}, value));
      }));
    },
  };
}

/** The call that was begun in this page, if one goes on. */
let own = null;

export const ownCall = () => own;

async function begin(agent, button) {
  button.disabled = true;
  say(button, "Connecting…");
  try {
    const { connect } = await import("/sayback.js");
    const call = await connect({ agent, token: token.get() || undefined });
    own = call;
    call.on("ended", ({ reason, detail }) => {
      own = null;
      tell(detail ? `The call is over: ${detail}` : "The call is over.", reason === "lost" || reason === "failed" ? "bad" : "plain");
      dispatchEvent(new Event("own-call"));
    });
    dispatchEvent(new Event("own-call"));
    location.hash = `#/calls/${encodeURIComponent(call.id)}`;
  } catch (error) {
    const absent = error instanceof TypeError || error.code === "no-webrtc";
    tell(absent ? "This server takes no calls from browsers. Add a [webrtc] table to its file." : `No call: ${error.message}`, "bad");
  }
  button.disabled = false;
  say(button, "Start a call");
}

/** The agents to choose from. */
export function agentChoice(agents, label) {
  const name = ({ called, agent }) => (called === "*" ? agent : `${agent} (${called})`);
  const select = h("select", {}, agents.map((one) => h("option", { value: one.called }, name(one))));
  return { select, root: h("label", {}, `${label} `, select) };
}

function rowOf(call) {
  const who = call.outbound ? `to ${call.to || "?"}` : call.from || "unknown caller";
  const state = call.live ? (call.question ? "asks" : "live") : words(call.ended ?? "over");
  const doing = call.live ? call.question ? `waits for a yes to: ${asks({ text: call.question, tool: "its question" })}` : "goes on" : `over: ${words(call.ended ?? "")}`;
  return h("li", { class: call.live ? "live" : "" },
    h("a", { href: `#/calls/${encodeURIComponent(call.call)}` },
      h("span", { class: `dot ${state === "asks" ? "ask" : call.live ? "good" : ""}`, "aria-hidden": "true" }),
      h("span", { class: "name" }, `${who} → ${call.agent}`),
      h("span", { class: "dim" }, doing),
      h("span", { class: "dim side" }, `${call.transport} · ${moment(new Date(call.began * 1000))}`)));
}

/** The list of calls. */
export async function callsPage(main, { signal, roles }) {
  const { agents } = await get("/v1/agents", signal);
  const list = h("ul", { class: "rows" });
  const empty = h("p", { class: "empty" });
  const choice = agentChoice(agents, "Agent");
  const start = h("button", { type: "submit", class: "primary" }, "Start a call");
  const form = h("form", { class: "card start", on: { submit: (event) => (event.preventDefault(), begin(choice.select.value, start)) } },
    h("h2", {}, "Call an agent"), h("p", { class: "dim" }, "With this computer's microphone. The browser asks for it once."), h("div", { class: "line" }, choice.root, start));
  put(main, h("h1", {}, "Calls"), roles.includes("call") ? form : null,
    h("section", { class: "card", "aria-label": "Calls" }, h("h2", {}, "Now and lately"), list, empty));
  const show = async () => {
    const { calls } = await get("/v1/calls", signal);
    const shown = calls.reverse().sort((a, b) => Number(b.live) - Number(a.live));
    put(list, shown.map(rowOf));
    say(empty, shown.length === 0 ? "No calls yet. Start one above, or call the server from a telephone." : "");
  };
  await show();
  const timer = setInterval(() => show().catch(() => {}), 2_000);
  signal.addEventListener("abort", () => clearInterval(timer));
}

/** Buttons for what can be done to a call. */
function controls(id, roles) {
  if (!roles.includes("call")) return null;
  const act = (body, done) => async () => {
    try {
      await post(`/v1/calls/${encodeURIComponent(id)}/actions`, body);
      if (done) tell(done);
    } catch (error) {
      tell(error.message, "bad");
    }
  };
  const text = h("input", { name: "text", autocomplete: "off", maxlength: 2000, "aria-label": "What the agent says", placeholder: "Let the agent say something" });
  const form = h("form", { class: "line say", on: { submit: (event) => {
    event.preventDefault();
    if (!text.value.trim()) return;
    act({ action: "say", text: text.value.trim() }, "The agent says it.")();
    text.value = "";
  } } }, text, h("button", { type: "submit" }, "Say"));
  const box = h("div", { class: "line acts" }, form);
  const mine = own && own.id === id ? own : null;
  if (!mine) {
    box.append(h("button", { type: "button", class: "danger", on: { click: act({ action: "end" }, "The call is being ended.") } }, "End the call"));
  } else {
    const mute = h("button", { type: "button", "aria-pressed": "false", on: { click: () => {
      mine.mute(!mine.muted);
      mute.setAttribute("aria-pressed", String(mine.muted));
      say(mute, mine.muted ? "Microphone is off" : "Mute my microphone");
    } } }, "Mute my microphone");
    box.append(mute, h("button", { type: "button", class: "danger", on: { click: () => mine.hangUp() } }, "Hang up"));
  }
  return h("section", { class: "card acting", "aria-label": "Act on this call" }, box);
}

/** Call time as it goes on between events: the event that came with the least delay tells it best. */
class CallClock {
  constructor() {
    this.ahead = -Infinity;
  }

  take(ms) {
    this.ahead = Math.max(this.ahead, ms - performance.now());
  }

  get now() {
    return Number.isFinite(this.ahead) ? performance.now() + this.ahead : 0;
  }
}

const CALM = matchMedia("(prefers-reduced-motion: reduce)");

/** Draws as time goes on, and no oftener than an eye can follow. */
function everyFrame(draw, signal) {
  let last = 0;
  const step = (at) => {
    if (signal.aborted) return;
    if (at - last > (CALM.matches ? 1_000 : 66)) {
      last = at;
      draw();
    }
    requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
}

/** One call, as it goes on. */
export async function callPage(main, { id, signal, roles }) {
  const call = await get(`/v1/calls/${encodeURIComponent(id)}`, signal);
  const story = new Story();
  const time = new CallClock();
  const state = banner();
  const line = new Timeline({ live: true });
  const took = stages();
  const log = logTable("What happened");
  const lost = h("p", { class: "lost", role: "status" });
  const acting = call.live ? controls(id, roles) : null;
  put(main, h("p", { class: "back" }, h("a", { href: "#/" }, "All calls")),
    h("h1", {}, `${call.from || "Unknown caller"} → ${call.agent}`),
    h("p", { class: "meta" }, `${call.transport} · ${moment(new Date(call.began * 1000))} · `, h("code", {}, call.call)),
    lost, state.root, acting, line.root, h("div", { class: "columns" }, log.root, took.root));
  const show = () => {
    state.show(story);
    took.show(story);
    line.show(story, story.ended ? story.end : Math.max(time.now, story.end));
  };
  show();
  signal.addEventListener("abort", () => line.close());
  everyFrame(() => {
    if (!story.ended) line.show(story, Math.max(time.now, story.end));
  }, signal);
  const take = (message) => {
    if (message.event === "missed") {
      story.missed += Number(message.data) || 0;
      say(lost, `${story.missed} events were missed: this page was too slow.`);
      return;
    }
    const event = JSON.parse(message.data);
    time.take(event.t_ms);
    story.take(event);
    log.add(event, true);
    show();
  };
  await follow(`/v1/calls/${encodeURIComponent(id)}/events`, take, (gone) => say(lost, gone ? "The connection is lost. Trying again…" : ""), signal);
  if (signal.aborted) return;
  story.ended ??= { t: story.end, reason: "broken_off" };
  // Whoever works by keyboard goes on from the top of the call, not from nowhere.
  if (acting?.contains(document.activeElement)) main.focus();
  acting?.remove();
  show();
}

/** Ends a call when the page goes: nobody is left to hear it. */
export function onLeave(path) {
  const leave = () => send("DELETE", path, { keepalive: true }).catch(() => {});
  addEventListener("pagehide", leave);
  return () => removeEventListener("pagehide", leave);
}

export { clock };
