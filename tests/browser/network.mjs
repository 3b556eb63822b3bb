// A call over the client for pages, from a network of its own: node network.mjs ADDRESS TOKEN CLIPS OPTIONS
//
// OPTIONS is JSON: what `connect` is given, `hidden` if the server must not learn where this browser is, and `move`: a
// command that gives this network another address. It is run in the middle of the first question.
// Books, and prints as JSON the call's log as its page saw it, the server's whole log, the states of the call, what ICE
// was called before and behind the move, and the two ends of the way that was taken.

import { execSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const [address, token, clips, written] = process.argv.slice(2);
const { hidden = false, move = null, ...options } = JSON.parse(written);
const require = createRequire(join(process.env.SAYBACK_BROWSER, "package.json"));
const { chromium } = require("playwright-core");
const PATIENCE = 60_000;

const sound = (name) => readFileSync(join(clips, name)).toString("base64");
const source = readFileSync(join(dirname(fileURLToPath(import.meta.url)), "caller.js"), "utf8");
const caller = `const CLIPS = ${JSON.stringify({ book: sound("book.wav"), yes: sound("yes-please.wav") })};\n${source}`;

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--autoplay-policy=no-user-gesture-required", `--unsafely-treat-insecure-origin-as-secure=${address}`],
});
try {
  const page = await browser.newPage();
  await page.addInitScript({ content: caller });
  page.setDefaultTimeout(PATIENCE);
  await page.goto(`${address}/healthz`);
  const id = await page.evaluate(
    async ([options, hidden]) => {
      if (hidden) {
        const real = window.fetch;
        window.fetch = (to, request) => {
          const tells = ["POST", "PATCH"].includes(request?.method);
          return real(to, tells ? { ...request, body: request.body.replace(/a=candidate:.*\r\n/g, "") } : request);
        };
      }
      const { connect } = await import("/sayback.js");
      const stream = await navigator.mediaDevices.getUserMedia({ audio: true });
      window.told = [];
      window.call = await connect({ ...options, stream });
      window.call.on("event", (line) => window.told.push(line));
      window.states = [];
      window.call.on("state", (state) => window.states.push(state));
      return window.call.id;
    },
    [{ token, ...options }, hidden],
  );
  /** How often these events have come. */
  const count = (...names) => page.evaluate((names) => window.told.filter((line) => names.includes(line.event)).length, names);
  /** Waits until one of these events has come more than `before` times; false: not in this time. */
  const more = (before, limit, ...names) =>
    page
      .waitForFunction(
        ([names, before]) => window.told.filter((line) => names.includes(line.event)).length > before,
        [names, before],
        { timeout: limit },
      )
      .then(() => true, () => false);
  const must = async (what, done) => {
    if (await done) return;
    const [told, states, ended] = await page.evaluate(() => [window.told, window.states, window.call.ended]);
    throw new Error(`${what}: ${JSON.stringify({ states, ended, told })}`);
  };
  const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
  const session = () => page.evaluate(() => /a=ice-ufrag:(\S+)/.exec(window.call._peer.remoteDescription.sdp)[1]);

  await must("no greeting was heard", more(0, PATIENCE, "agent.heard"));
  const sessions = [await session()];
  if (move) {
    // Words that were not understood, for what was lost of them, are said again.
    let asked = false;
    for (let tries = 1; tries <= 4 && !asked; tries += 1) {
      await page.evaluate(() => window.caller.say("book"));
      asked = await more(0, PATIENCE / 3, "question.started");
    }
    await must("nothing was asked", asked);
    await pause(500);
    execSync(move);
    const back = page.waitForFunction(() => /(reconnecting,live|ended)$/.test(window.states.join()), null, { timeout: PATIENCE });
    await must("the call did not go on", back.then(() => page.evaluate(() => !window.call.ended), () => false));
    await must("what became of the question was not told", more(0, PATIENCE, "question.heard", "question.dropped"));
    sessions.push(await session());
  }
  // Where sound was lost, the caller's or the agent's, the caller asks once more.
  let booked = false;
  for (let tries = 1; tries <= 5 && !booked; tries += 1) {
    const settled = await count("question.heard", "question.dropped");
    const heard = await count("question.heard");
    await page.evaluate(() => window.caller.say("book"));
    await more(settled, PATIENCE / 2, "question.heard", "question.dropped");
    // Behind all that is only known to lie in the question.
    await pause(2_000);
    if ((await count("question.heard")) === heard) continue;
    await page.evaluate(() => window.caller.say("yes"));
    booked = await more(0, PATIENCE / 4, "tool.finished");
  }
  await must("nothing was booked", booked);
  const way = await page.evaluate(async () => {
    const stats = [...(await window.call._peer.getStats()).values()];
    const chosen = stats.find((one) => one.type === "transport")?.selectedCandidatePairId;
    const pair = stats.find((one) => one.id === chosen);
    const end = (id) => {
      const { candidateType, address, port } = stats.find((one) => one.id === id);
      return { candidateType, address, port };
    };
    return { ours: end(pair.localCandidateId), theirs: end(pair.remoteCandidateId), described: window.call._peer.remoteDescription.sdp };
  });
  const [told, states] = await page.evaluate(() => [window.told, window.states]);
  await page.evaluate(() => window.call.hangUp());
  const answer = await fetch(`${address}/v1/calls/${id}/events`, { headers: { authorization: `Bearer ${token}` } });
  console.log(JSON.stringify({ told, way, states, sessions, log: await answer.text() }));
} finally {
  await browser.close();
}
