// Walks through the console in Chromium: node console.mjs ADDRESS ADDRESS-WITH-TOKENS PICTURES
//
// Each state is waited for, looked at for barriers (axe-core) and kept as a picture, in light, in dark and as wide as a
// telephone. The end is a failure if a request left the host, if the page complained, or if axe found anything.

import { Looker, PATIENCE, WAYS, banner, launch } from "./look.mjs";

const [address, guarded, pictures] = process.argv.slice(2);
const looker = new Looker(await launch(), pictures, [address, guarded]);
const look = (page, name) => looker.look(page, name);

/** One step of the made-up call. */
async function step(name) {
  const response = await fetch(`${address}/test/${name}`, { method: "POST" });
  if (!response.ok) throw new Error(`the step ${name} is refused: ${response.status}`);
  return response.text();
}

/** Lets a call go on for as long as somebody speaks. */
const spoken = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function calls(page) {
  await page.goto(`${address}/`);
  await page.getByRole("heading", { name: "Calls", exact: true }).waitFor({ timeout: PATIENCE });
  if (looker.way.name === "light") await look(page, "calls-none");
  const id = await step("start");
  await page.getByRole("link", { name: /anna → desk/ }).first().waitFor({ timeout: PATIENCE });
  await look(page, "calls");
  await page.goto(`${address}/#/calls/${encodeURIComponent(id)}`);
  await banner(page, "Waiting for the caller to speak");
  await spoken(900);
  await step("ask");
  await banner(page, "Question still playing");
  await spoken(700);
  await look(page, "call-playing");
  // Over the question: nothing runs.
  await step("yes");
  await spoken(600);
  await step("heard");
  await page.locator("tr", { hasText: "nothing ran" }).first().waitFor({ timeout: PATIENCE });
  await look(page, "call-over-the-question");
  if ((await page.locator("tr", { hasText: "confirmed by" }).count()) > 0) looker.fault("a yes over the question ran something");
}

async function booked(page) {
  // The model says something, and is asked once more.
  await spoken(900);
  await step("ask");
  await banner(page, "Question still playing");
  await spoken(1_500);
  await step("heard");
  await banner(page, "Waiting for the caller's yes to: “Shall I book Thursday?”");
  await spoken(900);
  await look(page, "call-waiting");
  await step("yes");
  await page.locator("tr", { hasText: "confirmed by “yes please”" }).waitFor({ timeout: PATIENCE });
  await spoken(600);
  await look(page, "call-ran");
  await step("end");
  await banner(page, "The call is over");
  await look(page, "call-over");
}

async function chat(page) {
  await page.goto(`${address}/#/chat`);
  await page.getByRole("button", { name: "Start a conversation" }).click();
  await page.locator(".items li", { hasText: "Hello." }).waitFor({ timeout: PATIENCE });
  const write = async (text) => {
    await page.getByLabel("Your message").fill(text);
    await page.keyboard.press("Enter");
  };
  await write("Book me for Thursday.");
  await banner(page, "Waiting for the caller's yes to: “Shall I book Thursday?”");
  await look(page, "chat-waiting");
  await write("yes");
  await page.locator(".undone li", { hasText: "ran on “yes”" }).waitFor({ timeout: PATIENCE });
  await page.locator(".items li", { hasText: "It is booked." }).waitFor({ timeout: PATIENCE });
  await look(page, "chat-ran");
  await page.getByRole("button", { name: "Take back to here, item 5" }).click();
  await page.locator("dialog .undone li", { hasText: "ran on “yes”" }).waitFor({ timeout: PATIENCE });
  await look(page, "chat-rewind");
  await page.getByRole("button", { name: "Take back", exact: true }).click();
  await page.locator(".items li", { hasText: "that is not undone" }).waitFor({ timeout: PATIENCE });
  await look(page, "chat-back");
}

async function recordings(page) {
  await page.goto(`${address}/#/recordings`);
  const sounding = page.locator(".rows li", { hasText: "with sound" }).first();
  await sounding.waitFor({ timeout: PATIENCE });
  await look(page, "recordings");
  await sounding.getByRole("link").click();
  await page.locator("audio").waitFor({ timeout: PATIENCE });
  await page.waitForFunction(() => document.querySelector("audio").duration > 0, null, { timeout: PATIENCE });
  await page.locator("path.caller-wave[d]").waitFor({ state: "attached", timeout: PATIENCE });
  await look(page, "recording");
  const saved = page.waitForEvent("download", { timeout: PATIENCE });
  await page.getByRole("button", { name: "Save as scenario" }).click();
  if (!(await saved).suggestedFilename().endsWith(".call.toml")) looker.fault("the scenario has another name");
}

async function others(page) {
  await page.goto(`${address}/#/approvals`);
  await page.locator(".approval").first().waitFor({ timeout: PATIENCE });
  await look(page, "approvals");
  await page.goto(`${address}/#/health`);
  await banner(page, "Calls are taken");
  await look(page, "health");
}

/** Answers both, by keyboard; a second answer has nothing to answer. */
async function answered(page) {
  await page.goto(`${address}/#/approvals`);
  await page.locator(".approval").nth(1).waitFor({ timeout: PATIENCE });
  for (const button of ["Approve", "Reject"]) {
    const before = await page.locator(".approval").count();
    await page.getByRole("button", { name: button }).first().focus();
    await page.keyboard.press("Enter");
    await page.waitForFunction((most) => document.querySelectorAll(".approval").length < most, before, { timeout: PATIENCE });
  }
  await page.getByText("Nothing waits for an operator.").waitFor({ timeout: PATIENCE });
  await look(page, "approvals-none");
}

async function token(page) {
  await page.goto(`${guarded}/#/recordings`);
  await page.getByRole("heading", { name: "Token" }).waitFor({ timeout: PATIENCE });
  await look(page, "token");
  await page.getByLabel("Token").last().fill("nonsense");
  await page.keyboard.press("Enter");
  await page.getByText("this token is not known here").waitFor({ timeout: PATIENCE });
  await page.getByLabel("Token").last().fill("ops");
  await page.keyboard.press("Enter");
  await page.locator(".rows li", { hasText: "with sound" }).first().getByRole("link").click();
  await page.waitForFunction(() => document.querySelector("audio")?.duration > 0, null, { timeout: PATIENCE });
  await page.getByText("ops · read").waitFor({ timeout: PATIENCE });
}

try {
  for (const way of WAYS) {
    const page = await looker.open(way);
    const parts = [calls, booked, chat, recordings, others, token];
    await looker.walk(page, way === WAYS.at(-1) ? [...parts, answered] : parts);
    await page.context().close();
  }
} finally {
  await looker.close();
}
