// The page: which part of it is shown, and the token.

import { Problem, get, token, wants } from "./api.js";
import { approvalsPage, showCount } from "./approvals.js";
import { callPage, callsPage, ownCall } from "./calls.js";
import { chatPage } from "./chat.js";
import { h, put, say, tell } from "./dom.js";
import { healthPage } from "./health.js";
import { recordingPage, recordingsPage } from "./recordings.js";

const main = document.getElementById("main");
const who = document.getElementById("who");
const dialog = document.getElementById("ask-token");
const field = document.getElementById("token");
const why = document.getElementById("why");

/** Address, role that it needs, what shows it. */
const PAGES = [
  [/^\/?$/, "read", callsPage],
  [/^\/calls\/([^/]+)$/, "read", callPage],
  [/^\/chat$/, "app", chatPage],
  [/^\/recordings$/, "read", recordingsPage],
  [/^\/recordings\/([^/]+)$/, "read", recordingPage],
  [/^\/approvals$/, "approve", approvalsPage],
  [/^\/health$/, "read", healthPage],
];

let shown = null;

/** What this token may do. */
async function access(signal) {
  const { name, roles } = await get("/v1/access", signal);
  say(who, token.get() ? `${name} · ${roles.join(", ")}` : "");
  document.getElementById("forget").hidden = !token.get();
  return roles;
}

async function show() {
  shown?.abort();
  const mine = (shown = new AbortController());
  const { signal } = mine;
  const path = location.hash.replace(/^#/, "") || "/";
  const [pattern, role, page] = PAGES.find(([pattern]) => pattern.test(path)) ?? PAGES[0];
  mark(path);
  main.setAttribute("aria-busy", "true");
  try {
    const roles = await access(signal);
    if (signal.aborted) return;
    if (roles.includes("approve")) showCount(signal);
    if (!roles.includes(role)) {
      put(main, h("h1", {}, "Not with this token"), h("p", { class: "empty" }, `This part needs a token with the role “${role}”.`));
      return;
    }
    const id = decodeURIComponent(pattern.exec(path)?.[1] ?? "");
    await page(main, { id, signal, roles });
  } catch (error) {
    if (signal.aborted || (error instanceof Problem && error.status === 401)) return;
    put(main, h("h1", {}, error.status === 404 ? "Not here" : "That did not work"), h("p", { class: "empty" }, error.message), h("p", {}, h("a", { href: "#/" }, "All calls")));
    if (!(error instanceof Problem)) console.error(error);
  } finally {
    if (!signal.aborted) main.removeAttribute("aria-busy");
  }
}

function mark(path) {
  const part = path.split("/")[1] ?? "";
  for (const link of document.querySelectorAll("nav a")) {
    const own = link.getAttribute("href").split("/")[1] ?? "";
    const here = own === part || (own === "" && part === "calls");
    if (here) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

wants.token = (problem) => {
  token.set("");
  say(why, problem.type === "no-token" ? "This server asks for a token. Make one with: sayback token" : problem.message);
  if (!dialog.open) dialog.showModal();
  field.focus();
};

document.getElementById("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  token.set(field.value.trim());
  field.value = "";
  dialog.close();
  show();
});

// Without a token there is nothing behind the question.
dialog.addEventListener("cancel", (event) => event.preventDefault());

document.getElementById("forget").addEventListener("click", () => {
  token.set("");
  tell("The token is forgotten.");
  show();
});

const ownBar = document.getElementById("own-call");
/** Shown wherever the call's own page is not. */
function showOwnCall() {
  const call = ownCall();
  const elsewhere = call && location.hash !== `#/calls/${encodeURIComponent(call.id)}`;
  put(ownBar, elsewhere ? [h("span", {}, "You are in a call."), h("a", { href: `#/calls/${encodeURIComponent(call.id)}` }, "Show it"), h("button", { type: "button", class: "danger small", on: { click: () => call.hangUp() } }, "Hang up")] : null);
  ownBar.hidden = !elsewhere;
}

addEventListener("own-call", showOwnCall);

addEventListener("hashchange", () => {
  showOwnCall();
  show();
  main.focus();
});
show();
