// Elements without markup: texts are only ever set as text, so nothing that a caller says can become part of the page.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, props, children) {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "on") {
      for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    } else if (name === "value") {
      element.value = value;
    } else {
      element.setAttribute(name, value === true ? "" : String(value));
    }
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** An element: `h("p", { class: "dim" }, "text")`; `on` has its listeners. */
export function h(tag, props, ...children) {
  return fill(document.createElement(tag), props, children);
}

/** The same of a drawing. */
export function s(tag, props, ...children) {
  return fill(document.createElementNS(SVG, tag), props, children);
}

/** Puts these children in place of those that are there. */
export function put(element, ...children) {
  element.replaceChildren(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** Sets a text only if it is another one, so that a screen reader says it once. */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** `1:02.3`, or `4.2 s` below a minute. */
export function clock(ms) {
  if (!Number.isFinite(ms)) return "–";
  const seconds = Math.max(0, ms) / 1000;
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  const minutes = Math.floor(seconds / 60);
  return `${minutes}:${(seconds - minutes * 60).toFixed(1).padStart(4, "0")}`;
}

/** `412 ms`, or `1.24 s` from a second on. */
export function length(ms) {
  if (!Number.isFinite(ms)) return "–";
  return ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(2)} s`;
}

/** A date and a time of day as people here write them. */
export function moment(date) {
  return Number.isNaN(date.valueOf())
    ? "–"
    : date.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
}

/** Tells what happened to those who cannot see it, and to those who can. */
export function tell(text, tone = "plain") {
  const place = document.getElementById("told");
  const note = h("p", { class: `note ${tone}` }, text);
  place.append(note);
  while (place.children.length > 3) place.firstElementChild.remove();
  setTimeout(() => note.remove(), tone === "bad" ? 12_000 : 6_000);
}
