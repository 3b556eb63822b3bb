// What the agent waits for, in words that need no explanation.

import { clock, h, length, say } from "./dom.js";
import { asks, reason, words } from "./story.js";

const quoted = (text) => `“${text}”`;

const ENDED = {
  hangup: "The caller hung up.",
  lost: "The connection to the caller broke and did not come back.",
  agent: "The agent said goodbye.",
  requested: "It was ended from here.",
};

function ofQuestion(asked) {
  const answer = asked.answers.at(-1);
  const asking = asked.askings.at(-1);
  if (answer && answer.verdict === "yes" && asked.heard) {
    return ["good", `Yes heard, ${length(answer.margin)} after the question`, `${quoted(answer.words)}. It runs once the line has been quiet for a moment.`];
  }
  if (asked.heard) {
    const unclear = answer && answer.verdict === "unclear" ? ` ${quoted(answer.words)} was not clear.` : "";
    const how = asked.heard.evidence ? ` (${asked.heard.evidence})` : "";
    return ["ask", `Waiting for the caller's yes to: ${asks(asked)}`, `Heard to its end at ${clock(asked.heard.latest)}${how}. A yes that begins from now on counts.${unclear}`];
  }
  if (asking || asked.reopened !== undefined) {
    return ["ask", `Question still playing: ${asks(asked)}`, "A yes now does not count: the whole question has not been heard."];
  }
  return ["ask", `About to ask: ${asks(asked)}`, "Nothing has happened yet."];
}

/** Tone, sentence and explanation of where a call stands. */
export function waiting(story, { live = true, text = false } = {}) {
  if (story.ended) return ["done", "The call is over", ENDED[story.ended.reason] ?? words(story.ended.reason)];
  if (!live) return ["done", "The recording ends here", ""];
  const approval = story.approvals.find((one) => one.answered === null);
  if (approval) return ["ask", `Waiting for an operator to approve: ${words(approval.tool)}`, "The caller is asked only after that."];
  const running = story.running;
  if (running) {
    return ["good", `Running ${words(running.tool)}`, running.by === null ? "" : `Confirmed by ${quoted(running.by)}.`];
  }
  if (story.question) return ofQuestion(story.question);
  if (story.dropped) {
    return ["bad", `Nothing ran: ${reason(story.dropped.dropped.reason)}`, `The question was ${asks(story.dropped)}`];
  }
  if (story.speaking) return ["agent", "The agent is speaking", quoted(story.speaking.text)];
  if (story.turn) return ["agent", "The agent is thinking", `The caller said ${quoted(story.turn.text)}`];
  if (!story.started) return ["plain", text ? "One moment" : "The call is being set up", ""];
  return ["plain", text ? "Waiting for your message" : "Waiting for the caller to speak", ""];
}

const MARKS = { ask: "?", good: "✓", bad: "✗", agent: "…", done: "■", plain: "·" };

/** The banner; `show(story)` brings it up to date. It is a live region, so each change is read out once. */
export function banner(options) {
  const mark = h("span", { class: "mark", "aria-hidden": "true" });
  const title = h("p", { class: "title" });
  const detail = h("p", { class: "detail" });
  const root = h("div", { class: "banner plain", role: "status", "aria-live": "polite", "aria-atomic": "true" }, mark, h("div", {}, title, detail));
  return {
    root,
    show(story) {
      const [tone, sentence, more] = waiting(story, options);
      root.className = `banner ${tone}`;
      say(mark, MARKS[tone]);
      say(title, sentence);
      say(detail, more);
    },
  };
}
