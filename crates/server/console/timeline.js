// A call drawn on a time axis: both voices with their words, the question's life, the tools. Only what is in view is
// drawn, so an hour costs no more than a minute.

import { clock, h, length, put, s } from "./dom.js";
import { reason, words } from "./story.js";

const ROWS = { caller: 34, agent: 112, question: 192, tools: 244 };
const BAR = 34;
const THIN = 18;
const HEIGHT = 292;
const STEPS = [100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 30_000, 60_000, 120_000, 300_000, 600_000, 1_200_000];
const SPANS = [["10 s", 10_000], ["30 s", 30_000], ["1 min", 60_000], ["5 min", 300_000], ["whole call", Infinity]];
const FONT = "600 12px system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif";

const pen = document.createElement("canvas").getContext("2d");
pen.font = FONT;
const widths = new Map();

function width(text) {
  if (widths.size > 5_000) widths.clear();
  let known = widths.get(text);
  if (known === undefined) widths.set(text, (known = pen.measureText(text).width));
  return known;
}

/** The text as far as it fits. */
function fit(text, room) {
  if (width(text) <= room) return text;
  let end = Math.max(1, Math.floor((text.length * room) / width(text)));
  while (end > 1 && width(`${text.slice(0, end)}…`) > room) end -= 1;
  return room < 14 ? "" : `${text.slice(0, end).trimEnd()}…`;
}

/** Draws a timeline. `now()` gives the call's time while it is live; `seek(ms)` is told of clicks. */
export class Timeline {
  constructor({ live, seek }) {
    this.live = live;
    this.seek = seek;
    this.story = null;
    this.now = 0;
    this.from = 0;
    this.span = !live ? Infinity : innerWidth < 640 ? 10_000 : 30_000;
    this.following = live;
    this.head = null;
    this.peaks = null;
    this.drawing = s("svg", { class: "call", role: "img", height: HEIGHT, on: { click: (event) => this.#clicked(event) } });
    this.#build();
    this.watch = new ResizeObserver(() => this.draw());
    this.watch.observe(this.board);
  }

  #build() {
    const lanes = [["Caller", ROWS.caller], ["Agent", ROWS.agent], ["Question", ROWS.question], ["Tools", ROWS.tools]];
    const labels = lanes.map(([name, y]) => h("span", { class: `lane lane-${y}` }, name));
    this.board = h("div", { class: "drawing" }, this.drawing);
    this.slider = h("input", {
      type: "range", min: 0, max: 1000, step: 1, "aria-label": "Position in the call",
      on: { input: () => this.go(Number(this.slider.value), false) },
    });
    const spans = SPANS.map(([name, span]) => h("option", { value: String(span), selected: span === this.span }, name));
    this.zoom = h("select", { on: { change: () => this.#zoomed() } }, spans);
    this.follow = h("button", { type: "button", class: "small", "aria-pressed": String(this.following), on: { click: () => this.#toggle() } }, "Follow");
    const tools = h("div", { class: "tools" }, this.slider, h("label", { class: "zoom" }, "Show ", this.zoom), this.live ? this.follow : null);
    this.root = h("section", { class: "card timeline", "aria-label": "Timeline" },
      h("div", { class: "board" }, h("div", { class: "lanes", "aria-hidden": "true" }, labels), this.board), tools, legend());
  }

  #zoomed() {
    const centre = this.from + this.#shown() / 2;
    this.span = Number(this.zoom.value);
    this.from = Math.max(0, centre - this.#shown() / 2);
    this.draw();
  }

  #toggle() {
    this.following = !this.following;
    this.follow.setAttribute("aria-pressed", String(this.following));
    this.draw();
  }

  /** Moves the view; a hand on the slider ends following. */
  go(from, follow) {
    this.from = Math.max(0, from);
    if (this.live && this.following !== follow) this.#toggle();
    else this.draw();
  }

  get end() {
    return Math.max(1_000, this.story?.end ?? 0, this.live ? this.now : 0, this.length ?? 0);
  }

  #shown() {
    return Math.min(this.span, Math.max(this.end * 1.02, 5_000));
  }

  #clicked(event) {
    if (!this.seek) return;
    const box = this.drawing.getBoundingClientRect();
    this.seek(this.from + ((event.clientX - box.left) / box.width) * this.#shown());
  }

  /** Keeps the play head in view. */
  play(ms) {
    this.head = ms;
    const shown = this.#shown();
    if (ms < this.from || ms > this.from + shown * 0.95) this.from = Math.max(0, ms - shown * 0.1);
    this.draw();
  }

  show(story, now) {
    this.story = story;
    this.now = now ?? story.end;
    this.draw();
  }

  draw() {
    const wide = this.board.clientWidth;
    if (!this.story || wide < 40) return;
    const shown = this.#shown();
    if (this.following && this.live) this.from = Math.max(0, this.end - shown * 0.92);
    this.from = Math.min(this.from, Math.max(0, this.end - shown * 0.2));
    this.slider.max = String(Math.max(1, Math.round(this.end - shown * 0.8)));
    this.slider.value = String(Math.round(this.from));
    this.slider.setAttribute("aria-valuetext", `from ${clock(this.from)}`);
    this.slider.parentElement.classList.toggle("whole", this.end <= shown * 1.01);
    const view = { from: this.from, to: this.from + shown, wide, x: (ms) => ((ms - this.from) / shown) * wide };
    this.drawing.setAttribute("viewBox", `0 0 ${wide} ${HEIGHT}`);
    this.drawing.setAttribute("aria-label", this.#told(view));
    put(this.drawing, hatch(), axis(view), callers(this.story, view), agents(this.story, view, this.now), this.#waves(view),
      questions(this.story, view, this.now), tools(this.story, view, this.now), this.#heads(view));
  }

  #told(view) {
    const within = (from, to) => to >= view.from && from <= view.to;
    const heard = this.story.caller.filter((one) => one.text && within(one.from, one.to)).length;
    const said = this.story.agent.filter((one) => one.started !== null && within(one.started, one.heard?.latest ?? this.now)).length;
    return `Timeline from ${clock(view.from)} to ${clock(view.to)}: the caller speaks ${heard} times, the agent ${said} times. The list of events below says the same in words.`;
  }

  #heads(view) {
    const line = (ms, kind) => s("line", { class: kind, x1: view.x(ms), x2: view.x(ms), y1: 20, y2: HEIGHT });
    const inView = (ms) => ms !== null && ms >= view.from && ms <= view.to;
    const over = this.story.ended;
    return [this.live && !over && inView(this.now) ? line(this.now, "now") : null, inView(this.head) ? line(this.head, "head") : null];
  }

  #waves(view) {
    if (!this.peaks) return [];
    return [wave(this.peaks.caller, this.peaks.rate, view, ROWS.caller, "caller-wave"), wave(this.peaks.agent, this.peaks.rate, view, ROWS.agent, "agent-wave")];
  }

  close() {
    this.watch.disconnect();
  }
}

function legend() {
  const key = (kind, text) => h("span", {}, h("i", { class: `k ${kind}` }), text);
  return h("p", { class: "legend", "aria-hidden": "true" }, key("caller", "caller"), key("answer", "an answer"), key("over", "over the question"),
    key("agent", "agent"), key("question", "question"), key("open", "open for an answer"), key("unsure", "known only to lie in here"), key("horizon", "the question had been heard"));
}

function hatch() {
  return s("defs", {}, s("pattern", { id: "hatch", width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
    s("line", { x1: 0, y1: 0, x2: 0, y2: 6, class: "hatch" })));
}

function axis(view) {
  const step = STEPS.find((step) => view.x(view.from + step) > 70) ?? 3_600_000;
  const marks = [];
  for (let ms = Math.ceil(view.from / step) * step; ms <= view.to; ms += step) {
    const x = view.x(ms);
    marks.push(s("line", { class: "grid", x1: x, x2: x, y1: 22, y2: HEIGHT }));
    if (x < view.wide - 24) marks.push(s("text", { class: "axis", x: x + 3, y: 14 }, step < 1_000 ? `${(ms / 1000).toFixed(1)} s` : axisText(ms)));
  }
  const bases = [ROWS.caller + BAR / 2, ROWS.agent + BAR / 2].map((y) => s("line", { class: "rest", x1: 0, x2: view.wide, y1: y, y2: y }));
  return [...marks, s("line", { class: "base", x1: 0, x2: view.wide, y1: 22, y2: 22 }), ...bases];
}

const axisText = (ms) => (ms < 60_000 ? `${ms / 1000} s` : `${Math.floor(ms / 60_000)}:${String(Math.round((ms % 60_000) / 1000)).padStart(2, "0")}`);

/** A bar with what is said of it; never thinner than can be seen. */
function bar(view, { from, to, y, tall = BAR, kind, title }) {
  const left = Math.max(-6, view.x(from));
  const right = Math.min(view.wide + 6, view.x(to));
  return s("rect", { class: kind, x: left, y, width: Math.max(2, right - left), height: tall, rx: 3 }, title ? s("title", {}, title) : null);
}

/** Texts of one lane, each in the room up to the next. */
function texts(view, all, y) {
  const placed = all.filter((one) => one.text);
  return placed.map((one, at) => {
    const left = Math.max(2, view.x(one.from));
    const next = placed[at + 1];
    const room = (next ? view.x(next.from) : view.wide) - left - 6;
    const shown = fit(one.text, room);
    return shown ? s("text", { class: `label ${one.kind ?? ""}`, x: left, y }, shown, s("title", {}, one.text)) : null;
  });
}

const within = (view, from, to) => to >= view.from && from <= view.to;

function callers(story, view) {
  const shown = story.caller.filter((one) => within(view, one.earliest ?? one.from, one.to));
  const bars = shown.flatMap((one) => [
    one.earliest !== null && one.earliest < one.from ? bar(view, { from: one.earliest, to: one.from, y: ROWS.caller, kind: "unsure" }) : null,
    bar(view, { from: one.from, to: Math.max(one.to, one.from + 1), y: ROWS.caller, kind: `caller ${one.part ?? ""} ${one.over ? "" : "going"} ${one.over && one.final && !one.text ? "faint" : ""}`, title: one.text || "no words" }),
  ]);
  const labels = shown.map((one) => ({ from: one.from, text: one.text, kind: one.ignored ? "ignored" : one.part === "answer" ? "good-text" : one.part === "over" ? "bad-text" : one.final ? "caller-text" : "dim" }));
  return [...bars, ...texts(view, labels, ROWS.caller + BAR + 15)];
}

/** Where an utterance ends of which nobody has said that it was heard. */
function until(story, one, now) {
  const next = story.agent.find((other) => other.started !== null && other.started > one.started);
  return Math.min(next?.started ?? now, story.ended?.t ?? now);
}

function agents(story, view, now) {
  const shown = story.agent.filter((one) => one.started !== null && within(view, one.started, one.heard?.latest ?? now));
  const bars = shown.flatMap((one) => {
    const end = one.heard ? one.heard.earliest ?? one.heard.latest : until(story, one, now);
    const kind = one.question ? "question" : "agent";
    return [
      bar(view, { from: one.started, to: end, y: ROWS.agent, kind: `${kind} ${one.heard ? "" : "going"}`, title: one.text }),
      one.heard && one.heard.latest > end ? bar(view, { from: end, to: one.heard.latest, y: ROWS.agent, kind: "unsure" }) : null,
      one.heard && !one.heard.complete ? s("line", { class: "cut", x1: view.x(end), x2: view.x(end), y1: ROWS.agent, y2: ROWS.agent + BAR }) : null,
    ];
  });
  const pauses = story.pauses.filter((one) => within(view, one.from, one.to ?? now))
    .map((one) => bar(view, { from: one.from, to: one.to ?? now, y: ROWS.agent, kind: "paused", title: "paused: does the caller speak?" }));
  const labels = shown.map((one) => {
    const cut = one.heard && !one.heard.complete;
    return { from: one.started, text: cut ? `${one.heard.text} ✂` : one.text, kind: one.question ? "ask-text" : "" };
  });
  return [...bars, ...pauses, ...texts(view, labels, ROWS.agent + BAR + 15)];
}

function questions(story, view, now) {
  return story.questions.flatMap((one, at) => {
    const close = one.ran ?? one.dropped;
    const end = close?.t ?? now;
    if (!within(view, one.held, end)) return [];
    const y = ROWS.question;
    const first = one.askings[0]?.from ?? end;
    const parts = [bar(view, { from: one.held, to: Math.min(first, end), y, tall: THIN, kind: "phase held", title: "held, not asked yet" })];
    one.askings.forEach((asking, at) => {
      const next = one.askings[at + 1]?.from ?? end;
      const until = asking.heard ? Math.min(asking.heard.latest, next) : next;
      parts.push(bar(view, { from: asking.from, to: until, y, tall: THIN, kind: "phase asking", title: one.text }));
      if (asking.heard) parts.push(bar(view, { from: asking.heard.latest, to: next, y, tall: THIN, kind: "phase open", title: "open for an answer" }), horizon(view, asking.heard.latest));
    });
    return [...parts, ...one.answers.flatMap((answer) => measure(view, one, answer)), ...closing(view, one, close, story.questions.slice(at + 1).find((next) => next.ran ?? next.dropped))];
  });
}

function horizon(view, ms) {
  const x = view.x(ms);
  return [s("line", { class: "horizon", x1: x, x2: x, y1: ROWS.caller - 6, y2: ROWS.question + THIN }),
    s("g", { class: "flag" }, s("rect", { x: x - 20, y: ROWS.agent - 19, width: 40, height: 15, rx: 3 }), s("text", { x, y: ROWS.agent - 8 }, "heard"))];
}

/** How long after the question the answer began. */
function measure(view, asked, answer) {
  const heard = asked.askings.findLast((one) => one.heard && one.heard.latest <= answer.onset + 1)?.heard;
  if (!heard) return [];
  const [from, to, y] = [view.x(heard.latest), view.x(answer.onset), ROWS.question - 8];
  return [s("line", { class: "measure", x1: from, x2: to, y1: y, y2: y }), s("line", { class: "measure", x1: to, x2: to, y1: y - 5, y2: y + 5 }),
    s("text", { class: "measure-text", x: to + 4, y: y + 4 }, `+${length(answer.margin)}`),
    bar(view, { from: answer.onset, to: answer.t, y: ROWS.question + 4, tall: THIN - 8, kind: `phase ${answer.verdict}`, title: `“${answer.words}”: ${answer.verdict}` })];
}

function closing(view, one, close, next) {
  if (!close) return [];
  const x = view.x(close.t);
  const mark = (kind, letter) => s("g", { class: `end ${kind}` }, s("circle", { cx: x, cy: ROWS.question + THIN / 2, r: 10 }), s("text", { x, y: ROWS.question + THIN / 2 + 5 }, letter));
  const text = (kind, said) => s("text", { class: kind, x: Math.max(2, x - 4), y: ROWS.question + THIN + 18 }, fit(said, Math.max(14, (next ? view.x((next.ran ?? next.dropped).t) - 10 : view.wide) - x)), s("title", {}, said));
  if (one.ran) return [mark("ran", "✓"), text("good-text label", `ran on “${one.ran.by}”`)];
  return [mark("stopped", "✗"), text("bad-text label", `nothing ran: ${reason(one.dropped.reason)}`)];
}

function tools(story, view, now) {
  const shown = story.tools.filter((one) => one.started !== null && within(view, one.started, one.finished ?? now));
  const bars = shown.map((one) => bar(view, { from: one.started, to: one.finished ?? now, y: ROWS.tools, tall: THIN, kind: `tool ${one.finished === null ? "going" : one.ok ? "good" : "bad"}`, title: one.message ?? "" }));
  const labels = shown.map((one) => ({ from: one.started, text: `${one.finished === null ? "…" : one.ok ? "✓" : "✗"} ${words(one.tool)} ${typeof one.input === "string" ? one.input : JSON.stringify(one.input ?? {})}`, kind: "" }));
  return [...bars, ...texts(view, labels, ROWS.tools + THIN + 15)];
}

function wave(peaks, rate, view, y, kind) {
  const middle = y + BAR / 2;
  const points = [];
  for (let x = 0; x < view.wide; x += 1.5) {
    const span = (view.to - view.from) / view.wide;
    const from = Math.floor(((view.from + x * span) / 1000) * rate);
    const to = Math.max(from + 1, Math.ceil(((view.from + (x + 1.5) * span) / 1000) * rate));
    let peak = 0;
    for (let at = from; at < Math.min(to, peaks.length); at += 1) peak = Math.max(peak, peaks[at]);
    if (peak > 0.012) points.push(`M${x.toFixed(1)} ${(middle - peak * 15).toFixed(1)}V${(middle + peak * 15).toFixed(1)}`);
  }
  return s("path", { class: `wave ${kind}`, d: points.join("") });
}
