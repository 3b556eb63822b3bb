// What waits for an operator. Each is answered once, by whoever is first.

import { get, post } from "./api.js";
import { h, put, say, tell } from "./dom.js";
import { words } from "./story.js";

const ago = (at, now) => {
  const seconds = Math.max(0, Math.round((now - at) / 1000));
  return seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min`;
};

function whose(asker) {
  if (asker?.call) return ["in the call ", h("a", { href: `#/calls/${encodeURIComponent(asker.call)}` }, asker.call)];
  if (asker?.session) return `in the session ${asker.session.id} of ${asker.session.user}`;
  return "";
}

/** How many wait, for the mark beside the link. */
export async function showCount(signal) {
  const count = document.getElementById("waiting");
  try {
    const { approvals } = await get("/v1/approvals", signal);
    count.hidden = approvals.length === 0;
    say(count, String(approvals.length));
    count.setAttribute("aria-label", `${approvals.length} wait`);
  } catch {
    count.hidden = true;
  }
}

function card(one, answered) {
  const why = h("input", { name: "reason", autocomplete: "off", maxlength: 1000 });
  const by = h("input", { name: "by", autocomplete: "name", maxlength: 200, value: sessionStorage.getItem("sayback.by") ?? "" });
  const payload = one.payload === undefined ? null : h("textarea", { name: "payload", rows: 4, spellcheck: "false", value: JSON.stringify(one.payload, null, 2) });
  const buttons = [];
  const answer = (confirmed) => async () => {
    const body = { confirmed };
    if (why.value.trim()) body.reason = why.value.trim();
    if (by.value.trim()) body.by = by.value.trim();
    sessionStorage.setItem("sayback.by", by.value.trim());
    if (payload) {
      try {
        body.payload = JSON.parse(payload.value);
      } catch {
        tell("What is filled in is no JSON; nothing was sent.", "bad");
        payload.focus();
        return;
      }
    }
    buttons.forEach((button) => (button.disabled = true));
    try {
      await post(`/v1/approvals/${encodeURIComponent(one.id)}`, body);
      tell(confirmed ? "Approved." : "Rejected.");
    } catch (error) {
      tell(error.message, "bad");
    }
    answered();
  };
  buttons.push(h("button", { type: "button", class: "primary", on: { click: answer(true) } }, "Approve"), h("button", { type: "button", class: "danger", on: { click: answer(false) } }, "Reject"));
  const age = h("span", { class: "age" });
  const root = h("li", { class: "card approval", "aria-label": `Approval: ${words(one.tool)}` },
    h("h2", {}, words(one.tool), h("small", {}, one.agent)),
    one.hint ? h("p", {}, one.hint) : null,
    h("pre", { tabindex: 0, "aria-label": "Input" }, JSON.stringify(one.input, null, 2)),
    h("p", { class: "dim" }, age, " · ", whose(one.asker)),
    payload ? h("label", {}, "Filled in (JSON)", payload) : null,
    h("div", { class: "line" }, h("label", {}, "Why ", why), h("label", {}, "Your name ", by), buttons));
  const tick = (now) => {
    const left = one.expires_ms ? `, too late in ${ago(now, one.expires_ms)}` : "";
    say(age, `asked ${ago(one.asked_ms, now)} ago${left}`);
  };
  return { root, tick };
}

/** The queue. One that is being filled in is not drawn anew. */
export async function approvalsPage(main, { signal }) {
  const rows = h("ul", { class: "approvals" });
  const empty = h("p", { class: "empty" });
  const cards = new Map();
  put(main, h("h1", {}, "Approvals"), h("p", { class: "dim" }, "An approval does not stand in for the caller's yes: a tool with a question still asks."), rows, empty);
  const show = async () => {
    const { approvals } = await get("/v1/approvals", signal);
    const ids = new Set(approvals.map((one) => one.id));
    for (const [id, one] of cards) {
      if (ids.has(id)) continue;
      one.root.remove();
      cards.delete(id);
    }
    for (const one of approvals) {
      if (!cards.has(one.id)) {
        cards.set(one.id, card(one, () => show().catch(() => {})));
        rows.append(cards.get(one.id).root);
      }
      cards.get(one.id).tick(Date.now());
    }
    say(empty, approvals.length === 0 ? "Nothing waits for an operator." : "");
    showCount(signal);
  };
  await show();
  const timer = setInterval(() => show().catch(() => {}), 1_500);
  signal.addEventListener("abort", () => clearInterval(timer));
}
