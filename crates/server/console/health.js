// Whether the server takes calls, and its figures.

import { get, text } from "./api.js";
import { h, put, say } from "./dom.js";

/** Figures in Prometheus' text format: name, help and value. */
function figures(body) {
  const help = new Map();
  const found = [];
  for (const line of body.split("\n")) {
    const [, name, meaning] = /^# HELP (\S+) (.*)$/.exec(line) ?? [];
    if (name) help.set(name, meaning);
    const [, metric, value] = /^([a-z_:][\w:]*(?:\{[^}]*\})?) (\S+)/i.exec(line) ?? [];
    if (metric) found.push({ name: metric, meaning: help.get(metric.replace(/\{.*/, "")) ?? "", value: Number(value) });
  }
  return found;
}

const shown = (value) => (Number.isInteger(value) ? value.toLocaleString() : value.toPrecision(4));

export async function healthPage(main, { signal, roles }) {
  const mark = h("span", { class: "mark", "aria-hidden": "true" });
  const title = h("p", { class: "title" });
  const detail = h("p", { class: "detail" });
  const state = h("div", { class: "banner plain", role: "status" }, mark, h("div", {}, title, detail));
  const body = h("tbody");
  const agents = roles.includes("read") ? (await get("/v1/agents", signal)).agents : [];
  put(main, h("h1", {}, "Health"), state,
    h("div", { class: "columns" },
      h("section", { class: "card", "aria-label": "Figures" }, h("h2", {}, "Figures ", h("small", {}, "since the start; /metrics has the same for Prometheus")),
        h("table", { class: "figures" }, h("caption", { class: "unseen" }, "Figures"), h("thead", {}, h("tr", {}, ...["What", "Value", "Name"].map((name) => h("th", { scope: "col" }, name)))), body)),
      h("section", { class: "card", "aria-label": "Agents" }, h("h2", {}, "Who answers"),
        h("dl", { class: "stages" }, agents.map((one) => h("div", {}, h("dt", {}, one.called === "*" ? "anything else" : one.called), h("dd", {}, one.agent)))))));
  const show = async () => {
    let open = true;
    let why = "";
    try {
      await text("/readyz", signal);
    } catch (error) {
      open = false;
      why = error.message;
    }
    state.className = `banner ${open ? "good" : "bad"}`;
    say(mark, open ? "✓" : "✗");
    say(title, open ? "Calls are taken" : "No calls are taken");
    say(detail, why);
    put(body, figures(await text("/metrics", signal)).map((one) => h("tr", {}, h("td", {}, one.meaning), h("td", { class: "value" }, shown(one.value)), h("td", {}, h("code", {}, one.name)))));
  };
  await show();
  const timer = setInterval(() => show().catch(() => {}), 3_000);
  signal.addEventListener("abort", () => clearInterval(timer));
}
