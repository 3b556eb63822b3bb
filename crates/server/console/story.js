// What an event log tells: stretches of speech, questions, tools and the time that each stage took. Events come in one
// by one, live or from a recording, and this is the only place that knows what they mean. It draws nothing.

const words = (name) => String(name ?? "").replaceAll("_", " ");

/** Why a question was closed, for people. */
export const REASONS = {
  barge_in: "the caller spoke before the whole question had been heard",
  replaced: "another request took its place",
  cancelled: "it was given up",
  not_played: "it did not reach the caller's ear",
  tts_failed: "the voice failed",
  hangup: "the caller hung up without an answer that counts",
  expired: "its time was over",
  declined: "the caller said no",
  unconfirmed: "there were too many unclear answers",
  owner_gone: "its tool is gone",
  definition_changed: "its tool was changed",
  rewound: "the conversation was taken back to before it",
  input_error: "a later request had a wrong input",
  rejected: "the operator said no",
};

/** A text of which the agent keeps no more than a hash, because it has personal details. */
const HASHED = /^\[\w+:[0-9a-f]{8,}\]$/;

/** What a question asks: word for word, or for what, where its words are redacted. */
export const asks = ({ text, tool }) => (HASHED.test(text) ? `${words(tool)} (the words are redacted)` : `“${text}”`);

export const reason = (code) => REASONS[code] ?? words(code);
export { words };

export class Story {
  constructor() {
    this.caller = []; // stretches of the caller's speech
    this.agent = []; // utterances
    this.questions = [];
    this.tools = [];
    this.told = [];
    this.notes = []; // keys, follow-ups, failures
    this.pauses = [];
    this.approvals = [];
    this.lines = []; // the log itself
    this.at = 0; // call time of the last event
    this.started = null;
    this.ended = null;
    this.turn = null; // the caller's last turn, while the agent has not answered it
    this.dropped = null; // the last dropped question, until somebody speaks again
    this.missed = 0;
    this.stages = { words: [], turn: [], model: [], voice: [], response: [], check: [], tool: [] };
  }

  /** The question that is not closed yet, if there is one. */
  get question() {
    const last = this.questions.at(-1);
    return last && !last.closed ? last : null;
  }

  get speaking() {
    const last = this.agent.findLast((one) => one.started !== null);
    return last && last.heard === null ? last : null;
  }

  get running() {
    return this.tools.find((tool) => tool.started !== null && tool.finished === null) ?? null;
  }

  /** Everything that lasts ends here. */
  get end() {
    const ends = [...this.caller.map((one) => one.to), ...this.agent.map((one) => one.heard?.latest ?? 0)];
    return Math.max(this.at, ...ends, 0);
  }

  take(line) {
    if (typeof line?.event !== "string") return;
    this.at = Math.max(this.at, Number(line.t_ms) || 0);
    this.lines.push(line);
    const take = TAKE[line.event];
    if (take) take(this, line, Number(line.t_ms) || 0);
  }
}

const stretch = (story, id) => {
  let one = story.caller.findLast((one) => one.id === id);
  if (!one) {
    one = { id, earliest: null, from: story.at, to: story.at, over: false, text: "", final: false, ignored: null, part: null };
    story.caller.push(one);
  }
  return one;
};

const utterance = (story, id) => story.agent.findLast((one) => one.id === id);
const question = (story, id) => story.questions.findLast((one) => one.id === id);
const tool = (story, line) => story.tools.findLast((one) => one.call === line.call_id && one.finished === null);

const TAKE = {
  "call.started"(story, line, t) {
    story.started = { t, call: line.call, transport: line.transport };
  },
  "call.ended"(story, line, t) {
    story.ended = { t, reason: line.reason };
  },
  "caller.speech"(story, line) {
    const one = stretch(story, line.segment);
    Object.assign(one, { earliest: line.onset_earliest_ms, from: line.onset_ms, to: line.offset_ms, over: true });
    place(story, one);
  },
  "caller.words"(story, line, t) {
    const one = stretch(story, line.segment);
    if (!one.over) Object.assign(one, { from: line.onset_ms ?? one.from, to: Math.max(one.to, line.offset_ms ?? t) });
    one.text = line.text;
    one.ignored = line.ignored ?? null;
    if (line.final && !one.final) {
      one.final = true;
      story.stages.words.push(Math.max(0, t - one.to));
    }
    place(story, one);
    story.dropped = null;
  },
  "caller.turn"(story, line, t) {
    const last = story.caller.findLast((one) => one.final && one.text);
    story.turn = { t, text: line.text, spoken: last ? last.to : t };
    if (last) story.stages.turn.push(Math.max(0, t - last.to));
  },
  "agent.said"(story, line, t) {
    const one = { id: line.utterance, text: line.text, said: t, started: null, heard: null, question: null };
    one.question = story.questions.findLast((q) => !q.closed && q.text === line.text)?.id ?? null;
    if (story.turn && story.turn.answered === undefined) {
      story.turn.answered = t;
      one.answers = story.turn;
      story.stages.model.push(Math.max(0, t - story.turn.t));
    }
    story.agent.push(one);
  },
  "agent.started"(story, line, t) {
    const one = utterance(story, line.utterance);
    if (!one) return;
    one.started = t;
    if (one.answers) {
      story.stages.voice.push(Math.max(0, t - one.said));
      story.stages.response.push(Math.max(0, t - one.answers.spoken));
      story.turn = null;
    }
  },
  "agent.paused"(story, _line, t) {
    story.pauses.push({ from: t, to: null });
  },
  "agent.resumed"(story, _line, t) {
    const last = story.pauses.at(-1);
    if (last) last.to = t;
  },
  "agent.heard"(story, line, t) {
    const one = utterance(story, line.utterance);
    if (!one) return;
    one.heard = { t, text: line.text, complete: line.complete, earliest: line.earliest_ms, latest: line.latest_ms, evidence: line.evidence };
    const last = story.pauses.at(-1);
    if (last && last.to === null) last.to = t;
  },
  "tool.called"(story, line, t) {
    const { call_id: call, skill, tool, input } = line;
    story.tools.push({ call, skill, tool, input, called: t, started: null, finished: null, by: null });
  },
  "tool.started"(story, line, t) {
    let one = tool(story, line);
    if (!one) {
      one = { call: line.call_id, tool: line.tool, called: t, finished: null };
      story.tools.push(one);
    }
    Object.assign(one, { started: t, input: line.input, by: line.confirmed_by ?? null });
    const asked = story.question;
    if (one.by !== null && asked && asked.tool === line.tool) {
      Object.assign(asked, { closed: true, ran: { t, by: one.by, call: line.call_id } });
      one.question = asked.id;
    }
  },
  "tool.finished"(story, line, t) {
    const one = tool(story, line);
    if (!one) return;
    Object.assign(one, { finished: t, ok: line.ok, message: line.message, outcome: line.outcome });
    if (one.started !== null) story.stages.tool.push(Math.max(0, t - one.started));
  },
  "question.held"(story, line, t) {
    story.questions.push({ id: line.question, tool: line.tool, text: line.text, held: t, askings: [], heard: null, answers: [], closed: false, ran: null, dropped: null });
    story.dropped = null;
  },
  "question.started"(story, line, t) {
    let one = question(story, line.question);
    if (!one) {
      TAKE["question.held"](story, line, t);
      one = story.questions.at(-1);
    }
    one.askings.push({ from: t, heard: null });
    one.heard = null;
    const said = story.agent.findLast((u) => u.text === line.text);
    if (said) said.question = one.id;
  },
  "question.reopened"(story, line, t) {
    let one = question(story, line.question);
    if (!one) {
      TAKE["question.held"](story, { ...line, tool: line.tool ?? "" }, t);
      one = story.questions.at(-1);
    }
    story.questions.splice(story.questions.indexOf(one), 1);
    story.questions.push(Object.assign(one, { closed: false, ran: null, dropped: null, before: line.ran_before ?? null, reopened: t }));
  },
  "question.heard"(story, line) {
    const one = question(story, line.question);
    if (!one) return;
    one.heard = { earliest: line.earliest_ms, latest: line.latest_ms, evidence: line.evidence };
    if (one.askings.length > 0) one.askings.at(-1).heard = one.heard;
  },
  "question.repeated"(story, line) {
    const one = question(story, line.question);
    if (one) Object.assign(one, { heard: null, round: line.round });
  },
  "answer.checked"(story, line, t) {
    const one = question(story, line.question);
    if (!one) return;
    const answer = { t, words: line.words, onset: line.onset_ms, margin: line.margin_ms, verdict: line.verdict, veto: line.veto, error: line.error };
    one.answers.push(answer);
    const spoken = story.caller.findLast((s) => s.final && s.text);
    if (spoken && spoken.to <= t && spoken.from >= (one.heard?.earliest ?? Infinity)) {
      spoken.part = line.verdict === "yes" ? "answer" : spoken.part;
      story.stages.check.push(Math.max(0, t - spoken.to));
    }
  },
  "question.dropped"(story, line, t) {
    const one = question(story, line.question);
    if (!one) return;
    Object.assign(one, { closed: true, dropped: { t, reason: line.reason } });
    story.dropped = one;
    if (line.reason === "barge_in") {
      const over = story.caller.findLast((s) => s.text && !s.ignored);
      if (over) over.part = "over";
    }
  },
  "silence.followup"(story, line, t) {
    story.notes.push({ t, text: `silence: ${line.text ?? ""}` });
  },
  dtmf(story, line, t) {
    story.notes.push({ t, text: `key ${line.digit}` });
  },
  "model.told"(story, line, t) {
    story.told.push({ t, text: line.text });
  },
  "model.failed"(story, line, t) {
    story.notes.push({ t, text: line.error, bad: true });
  },
  "conversation.rewound"(story) {
    story.turn = null;
    story.dropped = null;
  },
  "confirmation.requested"(story, line, t) {
    story.approvals.push({ t, tool: line.tool, id: line.id, answered: null });
  },
  "confirmation.answered"(story, line, t) {
    const open = story.approvals.find((one) => one.id === line.id && one.answered === null);
    if (open) open.answered = { t, ...line };
  },
};

/** Whether a stretch lies in the question that is being asked: then its words cannot be an answer. */
function place(story, one) {
  const asked = story.question;
  const asking = asked?.askings.at(-1);
  if (!asking || one.part) return;
  const begins = one.earliest ?? one.from;
  if (begins >= asking.from && asked.heard === null && one.over && one.text) one.part = "over";
}

/** Median and last of the times of a stage. */
export function figures(times) {
  if (times.length === 0) return null;
  const sorted = [...times].sort((a, b) => a - b);
  return { median: sorted[(sorted.length - 1) >> 1], last: times.at(-1), count: times.length };
}

/** The event log as lines of JSON, read as far as it is some. */
export function logLines(text) {
  const lines = [];
  for (const line of text.split("\n")) {
    if (!line.trim()) continue;
    try {
      lines.push(JSON.parse(line));
    } catch {
      // A recording that was cut off ends within a line.
    }
  }
  return lines;
}
