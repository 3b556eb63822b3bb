// The event log in words: the same as the timeline for those who do not see it, and for those who want it exact.

import { clock, h, length } from "./dom.js";
import { reason, words } from "./story.js";

const quoted = (text) => `“${text}”`;
const input = (value) => (typeof value === "string" ? value : JSON.stringify(value ?? {}));

/** Who, what and kind of each event; events that are not here are shown with their name. */
const ROWS = {
  "call.started": (e) => ["call", `began over ${e.transport}`, "mark"],
  "call.ended": (e) => ["call", `ended: ${words(e.reason)}`, "mark"],
  "caller.speech": () => null,
  "caller.words": (e) => (e.final ? ["caller", e.text ? quoted(e.text) : "no words", e.ignored ? "caller ignored" : e.text ? "caller" : "mark", e.ignored ? `ignored: ${words(e.ignored)}` : ""] : null),
  "caller.turn": (e) => ["caller", `has finished: ${quoted(e.text)}`, "mark"],
  "agent.said": (e) => ["agent", quoted(e.text), "agent"],
  "agent.started": () => null,
  "agent.paused": () => ["agent", "fell silent: does the caller speak?", "mark"],
  "agent.resumed": () => ["agent", "goes on: there were no words", "mark"],
  "agent.heard": (e) => (e.complete ? null : ["agent", `was heard only up to ${quoted(e.text)}`, "mark bad"]),
  "tool.called": (e) => ["model", `wants ${words(e.tool)} ${input(e.input)}`, "told"],
  "tool.started": (e) => ["tool", `${words(e.tool)} runs ${input(e.input)}`, "tool", e.confirmed_by === undefined ? "needs no yes" : `confirmed by ${quoted(e.confirmed_by)}`],
  "tool.finished": (e) => ["tool", e.message || words(e.outcome), e.ok ? "tool" : "bad", e.ok ? "" : words(e.outcome)],
  "question.held": (e) => ["question", `held: ${quoted(e.text)}`, "mark"],
  "question.started": (e) => ["question", `is being asked: ${quoted(e.text)}`, "ask", "a yes now does not count"],
  "question.heard": (e) => ["question", "was heard to its end", "ask", `at ${clock(e.latest_ms)}, known by ${e.evidence}`],
  "question.repeated": (e) => ["question", e.round > 0 ? `is asked again (round ${e.round})` : "is asked again", "mark"],
  "question.reopened": (e) => ["question", `is open again: ${quoted(e.text)}`, "ask", e.ran_before ? `it already ran on ${quoted(e.ran_before)}` : ""],
  "question.dropped": (e) => ["question", `nothing ran: ${reason(e.reason)}`, "bad"],
  "answer.checked": (e) => ["answer", `${quoted(e.words)} means ${e.verdict}`, e.verdict === "yes" ? "tool" : "mark", [`began ${length(e.margin_ms)} after the question`, e.veto ? `veto: ${words(e.veto)}` : "", e.error ? `check: ${e.error}` : ""].filter(Boolean).join(" · ")],
  "silence.followup": (e) => ["agent", `after silence: ${quoted(e.text ?? "")}`, "mark"],
  dtmf: (e) => ["caller", `pressed ${e.digit}`, "caller"],
  "model.told": (e) => ["model", `is told: ${e.text}`, "told"],
  "model.failed": (e) => ["model", e.error, "bad"],
  "conversation.rewound": (e) => ["conversation", `taken back to ${e.items} items; what ran is not undone`, "mark"],
  "confirmation.requested": (e) => ["operator", `is asked to approve ${words(e.tool)}`, "ask"],
  "confirmation.answered": (e) => ["operator", e.confirmed === false ? "said no" : "answered", "tool", e.by ?? e.reason ?? ""],
};

/** A row of the log, or nothing for what only the timeline needs. */
export function row(line, seek) {
  const known = ROWS[line.event];
  const told = known ? known(line) : ["event", line.event, "mark"];
  if (!told) return null;
  const [who, what, kind, note = ""] = told;
  const when = clock(line.t_ms);
  const time = seek ? h("button", { type: "button", class: "link", title: "Play from here", on: { click: () => seek(line.t_ms) } }, when) : when;
  return h("tr", { class: kind }, h("td", { class: "when" }, time), h("td", { class: "who" }, who), h("td", { class: "what" }, what), h("td", { class: "note" }, note));
}

/** A table that rows are added to. */
export function logTable(title, seek) {
  const body = h("tbody");
  const head = h("tr", {}, ...["Time", "Who", "What", "Note"].map((name) => h("th", { scope: "col" }, name)));
  const table = h("table", { class: "log" }, h("caption", { class: "unseen" }, title), h("thead", {}, head), body);
  return {
    root: h("section", { class: "card", "aria-label": title }, h("h2", {}, title), table),
    add(line, newestFirst = false) {
      const one = row(line, seek);
      if (!one) return;
      if (newestFirst) body.prepend(one);
      else body.append(one);
    },
    clear: () => body.replaceChildren(),
  };
}
