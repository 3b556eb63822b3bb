// A conversation in text, to try an agent; it can be taken back, and what that does not undo is listed first.

import { follow, get, post, send } from "./api.js";
import { banner } from "./banner.js";
import { agentChoice, onLeave, stages } from "./calls.js";
import { h, put, say, tell } from "./dom.js";
import { Story, words } from "./story.js";

const input = (text) => {
  try {
    return JSON.stringify(JSON.parse(text));
  } catch {
    return String(text);
  }
};

/** Who said it and what, of an item of the conversation. */
function told(item) {
  if (item.type === "caller") return ["you", item.text, "mine"];
  if (item.type === "agent") return ["agent", item.complete ? item.text : `${item.text} …`, "theirs"];
  if (item.type === "call") return ["call", `${words(item.call.name)} ${input(item.call.input)}`, "quiet"];
  if (item.type === "result") return ["result", item.confirmed_by ? `${item.text} (confirmed by “${item.confirmed_by}”)` : item.text, item.confirmed_by ? "quiet ran" : "quiet"];
  return ["told", item.text, "quiet"];
}

const list = (all) => h("ul", { class: "undone" }, all.map((one) => h("li", {}, h("b", {}, words(one.tool)), ` ran on “${one.confirmed_by}”, asked: “${one.question}”`)));

/** One conversation: what it shows, and what it takes. */
class Conversation {
  constructor(chat, signal) {
    this.path = `/v1/chats/${encodeURIComponent(chat)}`;
    this.signal = signal;
    this.story = new Story();
    this.state = banner({ text: true });
    this.took = stages({ sound: false });
    this.items = h("ol", { class: "items", "aria-label": "Conversation" });
    this.ran = h("div");
    this.text = h("input", { name: "message", autocomplete: "off", maxlength: 4000, "aria-label": "Your message", placeholder: "Write to the agent" });
    this.form = h("form", { class: "line say", on: { submit: (event) => (event.preventDefault(), this.#write()) } }, this.text, h("button", { type: "submit", class: "primary" }, "Send"));
    this.dialog = h("dialog", { "aria-labelledby": "back-title" });
    const ran = h("section", { class: "card", "aria-label": "What ran" }, h("h2", {}, "Ran on a yes"), this.ran);
    this.root = h("div", {}, this.state.root,
      h("div", { class: "columns" }, h("section", { class: "card chat", "aria-label": "Conversation" }, this.items, this.form), h("div", {}, ran, this.took.root)), this.dialog);
  }

  async run() {
    this.#show(await get(this.path, this.signal));
    this.text.focus();
    const take = (message) => {
      if (message.event !== "missed") this.story.take(JSON.parse(message.data));
      this.#look();
    };
    await follow(`${this.path}/events`, take, (gone) => gone && tell("The connection is lost. Trying again…", "bad"), this.signal);
    if (this.signal.aborted) return;
    this.story.ended ??= { reason: "hangup" };
    this.#show(await get(this.path, this.signal));
    this.form.remove();
  }

  /** Many events come at once; one look is enough for all of them. */
  #look() {
    if (this.looking) return;
    this.looking = true;
    setTimeout(async () => {
      this.looking = false;
      try {
        this.#show(await get(this.path, this.signal));
      } catch (error) {
        if (!this.signal.aborted) tell(error.message, "bad");
      }
    }, 30);
  }

  #show(chat) {
    // The log that others see has no personal details; whoever writes sees the agent's words as they are.
    this.hold = chat.hold;
    const asked = this.story.question;
    if (asked && chat.question) asked.text = chat.question;
    this.state.show(this.story);
    this.took.show(this.story);
    const near = this.items.scrollHeight - this.items.scrollTop - this.items.clientHeight < 80;
    put(this.items, chat.items.map((item, at) => this.#item(item, at, chat)));
    if (near) this.items.scrollTop = this.items.scrollHeight;
    put(this.ran, chat.ran.length > 0 ? list(chat.ran) : h("p", { class: "dim" }, "Nothing yet."));
    this.items.setAttribute("aria-busy", String(!chat.idle && !chat.over));
  }

  #item(item, at, chat) {
    const [who, text, kind] = told(item);
    const back = at + 1 < chat.items.length && !chat.over
      ? h("button", { type: "button", class: "small back-to", "aria-label": `Take back to here, item ${at + 1}`, on: { click: () => this.#ask(at + 1) } }, "Back to here")
      : null;
    return h("li", { class: kind }, h("span", { class: "by" }, who), h("span", { class: "text" }, text), back);
  }

  async #write() {
    const text = this.text.value.trim();
    if (!text) return;
    try {
      // Sent twice, by a double click or by a slow network, it answers the question that was on the page and no other.
      await post(`${this.path}/messages`, this.hold ? { text, answers: this.hold } : { text });
      this.text.value = "";
    } catch (error) {
      tell(error.message, "bad");
    }
  }

  /** Says what would not be undone, and takes back only after that. */
  async #ask(items) {
    try {
      const { not_undone: left } = await post(`${this.path}/rewind`, { items, dry_run: true });
      const body = left.length > 0
        ? [h("p", {}, "This is not undone, and does not run again by itself:"), list(left)]
        : h("p", {}, "Nothing ran on a yes since then.");
      const go = h("button", { type: "button", class: "primary", on: { click: () => this.#back(items) } }, "Take back");
      put(this.dialog, h("h2", { id: "back-title" }, `Keep the first ${items} items?`), body,
        h("div", { class: "line" }, go, h("button", { type: "button", on: { click: () => this.dialog.close() } }, "Leave it")));
      this.dialog.showModal();
    } catch (error) {
      tell(error.message, "bad");
    }
  }

  async #back(items) {
    this.dialog.close();
    try {
      await post(`${this.path}/rewind`, { items });
      this.#look();
    } catch (error) {
      tell(error.message, "bad");
    }
  }
}

/** The page: an agent is chosen, then written to. */
export async function chatPage(main, { signal, roles }) {
  const agents = roles.includes("read") ? (await get("/v1/agents", signal)).agents : [{ called: "*", agent: "the agent" }];
  const choice = agentChoice(agents, "Agent");
  const place = h("div");
  const start = h("button", { type: "submit", class: "primary" }, "Start a conversation");
  let leave = () => {};
  signal.addEventListener("abort", () => leave());
  const open = async () => {
    start.disabled = true;
    try {
      const { chat } = await post("/v1/chats", { agent: choice.select.value });
      const path = `/v1/chats/${encodeURIComponent(chat)}`;
      leave();
      const own = new AbortController();
      const forget = onLeave(path);
      leave = () => {
        forget();
        own.abort();
        send("DELETE", path, { keepalive: true }).catch(() => {});
        leave = () => {};
      };
      const conversation = new Conversation(chat, own.signal);
      put(place, conversation.root);
      say(start, "Start anew");
      conversation.run().catch((error) => own.signal.aborted || tell(error.message, "bad"));
    } catch (error) {
      tell(error.message, "bad");
    }
    start.disabled = false;
  };
  const form = h("form", { class: "card start", on: { submit: (event) => (event.preventDefault(), open()) } },
    h("div", { class: "line" }, choice.root, start), h("p", { class: "dim last" }, "The same agent in text. Its tools run for real once you say yes."));
  put(main, h("h1", {}, "Try an agent"), form, place);
}
