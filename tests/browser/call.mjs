// Calls an agent from the console's own page, with its own button and a recorded caller as the microphone:
// node call.mjs ADDRESS CLIPS PICTURES DOWNLOADS
//
// Three calls: one that books, by mouse; one whose yes comes over the question and books nothing, by keyboard alone; one
// that books on a telephone's width. Each is then looked up among the recordings and saved as a scenario, into the folder
// DOWNLOADS. Each state is looked at as console.mjs does.

import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { Looker, PATIENCE, WAYS, banner, launch } from "./look.mjs";

const [address, clips, pictures, downloads] = process.argv.slice(2);
const looker = new Looker(await launch(), pictures, [address]);
const look = (page, name) => looker.look(page, name);

const caller = () => {
  const sound = (name) => readFileSync(join(clips, name)).toString("base64");
  const source = readFileSync(join(dirname(fileURLToPath(import.meta.url)), "caller.js"), "utf8");
  return `const CLIPS = ${JSON.stringify({ book: sound("book.wav"), yes: sound("yes-please.wav") })};\n${source}`;
};
const say = (page, name) => page.evaluate((name) => window.caller.say(name), name);
const row = (page, text) => page.locator("table.log tr", { hasText: text }).first();

/** What has the focus, as a screen reader calls it. */
const focused = (page) =>
  page.evaluate(() => {
    const on = document.activeElement;
    return on === document.body ? "" : (on?.getAttribute("aria-label") ?? on?.textContent?.trim() ?? "");
  });

/** Goes there by the tabulator key. */
async function reach(page, name) {
  const passed = [];
  for (let steps = 0; steps < 80; steps += 1) {
    await page.keyboard.press("Tab");
    const here = await focused(page);
    if (here.startsWith(name)) return;
    passed.push(here.slice(0, 40));
  }
  throw new Error(`${name} is not reached by keyboard: ${passed.join(" | ")}`);
}

/** Presses a button or follows a link, by mouse or by keyboard. */
async function press(page, role, name, byKeyboard) {
  if (byKeyboard) {
    await reach(page, name);
    await page.keyboard.press("Enter");
  } else {
    await page.getByRole(role, { name }).first().click();
  }
}

/** All that the page is, in bytes: more would be felt on a telephone's line. */
const HEAVIEST = 128 * 1024;

/** How soon the page is seen, and what it weighs. */
async function weigh(page) {
  const [paint, files, bytes] = await page.evaluate(() => {
    const paint = performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? NaN;
    const files = [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")].filter((one) => !one.name.includes("/v1/"));
    return [paint, files.length, files.reduce((sum, one) => sum + one.decodedBodySize, 0)];
  });
  console.log(`the page: first paint after ${paint.toFixed(0)} ms; ${files} files, ${bytes} bytes`);
  if (bytes > HEAVIEST) looker.fault(`the page weighs ${bytes} bytes`);
}

async function begin(page, byKeyboard) {
  await page.goto(`${address}/`);
  await page.getByRole("heading", { name: "Calls", exact: true }).waitFor({ timeout: PATIENCE });
  if (looker.way === WAYS[0]) await weigh(page);
  await look(page, "idle");
  // The offer is held back for as long as the page is looked at.
  let offered = () => {};
  const ringing = new Promise((resolve) => (offered = resolve));
  await page.route(/\/v1\/webrtc/, async (route) => {
    if (route.request().method() === "POST") await new Promise((resolve) => offered(resolve));
    await route.continue();
  });
  await press(page, "button", "Start a call", byKeyboard);
  await page.getByText("Connecting").first().waitFor({ timeout: PATIENCE });
  const goOn = await ringing;
  await look(page, "ringing");
  goOn();
  await banner(page, "The agent is speaking");
  await banner(page, "Waiting for the caller to speak");
  await say(page, "book");
  await banner(page, "Question still playing");
}

/** Where sound was lost, on a machine that is too busy, the question was not heard, and the caller asks once more. */
async function heard(page) {
  for (let tries = 0; tries < 3; tries += 1) {
    const asked = page.locator(".banner .title", { hasText: "Waiting for the caller's yes to:" }).first();
    const lost = page.locator("table.log tr", { hasText: "it did not reach the caller's ear" }).nth(tries);
    await asked.or(lost).first().waitFor({ timeout: PATIENCE });
    if (await asked.isVisible()) return;
    await banner(page, "Waiting for the caller to speak");
    await say(page, "book");
    await banner(page, "Question still playing");
  }
  throw new Error("the question is never heard");
}

async function books(page) {
  // No look at barriers while sound flows into a page: it would take the time that the sound needs.
  await looker.picture(page, "question-playing");
  await heard(page);
  await look(page, "question-heard");
  await say(page, "yes");
  await row(page, "confirmed by").waitFor({ timeout: PATIENCE });
  await banner(page, "Waiting for the caller to speak");
  await look(page, "ran");
}

async function doesNotBook(page) {
  await say(page, "yes");
  await row(page, "the caller spoke before the whole question had been heard").waitFor({ timeout: PATIENCE });
  await look(page, "dropped");
  if ((await page.locator("tr", { hasText: "confirmed by" }).count()) > 0) looker.fault("a yes over the question ran something");
}

async function over(page, byKeyboard) {
  await press(page, "button", "Hang up", byKeyboard);
  await banner(page, "The call is over");
  if (byKeyboard && (await focused(page)) === "") looker.fault("the focus is lost when the call is over");
  await look(page, "over");
}

async function keep(page, byKeyboard) {
  await press(page, "link", "Recordings", byKeyboard);
  await page.locator(".rows li", { hasText: "with sound" }).first().waitFor({ timeout: PATIENCE });
  await press(page, "link", "Clinic desk", byKeyboard);
  await page.locator("path.caller-wave[d]").waitFor({ state: "attached", timeout: PATIENCE });
  await look(page, "past-call");
  const saved = page.waitForEvent("download", { timeout: PATIENCE });
  await press(page, "button", "Save as scenario", byKeyboard);
  const download = await saved;
  await download.saveAs(join(downloads, `${looker.way.name}.call.toml`));
  await page.getByText("Saved. Look it over").waitFor({ timeout: PATIENCE });
  await look(page, "saved");
}

try {
  const [light, dark, phone] = WAYS;
  for (const [way, talk, byKeyboard] of [[light, books, false], [dark, doesNotBook, true], [phone, books, false]]) {
    const page = await looker.open(way, caller());
    const parts = [begin, talk, over, keep];
    const named = parts.map((part) => Object.defineProperty((page) => part(page, byKeyboard), "name", { value: part.name }));
    await looker.walk(page, named);
    await page.context().close();
  }
} finally {
  await looker.close();
}
