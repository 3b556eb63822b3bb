// A call over the client for pages, from a network of its own: node network.mjs ADDRESS TOKEN CLIPS OPTIONS
//
// OPTIONS is JSON: what `connect` is given, and `hidden` if the server must not learn where this browser is.
// Books, and prints as JSON the call's log as its page saw it, the server's whole log, and the two ends of the way that was taken.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const [address, token, clips, written] = process.argv.slice(2);
const { hidden = false, ...options } = JSON.parse(written);
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
      return window.call.id;
    },
    [{ token, ...options }, hidden],
  );
  const until = (...names) =>
    page.waitForFunction((names) => window.told.find((line) => names.includes(line.event)), names, { timeout: PATIENCE })
      .catch(async (error) => {
        throw new Error(`${error}: ${JSON.stringify(await page.evaluate(() => window.told))}`);
      });
  await until("agent.heard");
  // Where sound was lost, the caller's or the agent's, the caller asks once more.
  const settled = () => window.told.filter((line) => ["question.heard", "question.dropped"].includes(line.event)).length;
  const heard = () => window.told.some((line) => line.event === "question.heard");
  for (let tries = 1; tries <= 4 && !(await page.evaluate(heard)); tries += 1) {
    const before = await page.evaluate(settled);
    await page.evaluate(() => window.caller.say("book"));
    const next = page.waitForFunction(`(${settled})() > ${before}`, null, { timeout: PATIENCE / 2 });
    await next.then(() => new Promise((resolve) => setTimeout(resolve, 2_000)), () => {});
  }
  if (!(await page.evaluate(heard))) throw new Error(`no question was heard: ${JSON.stringify(await page.evaluate(() => window.told))}`);
  // Behind all that is only known to lie in the question.
  await new Promise((resolve) => setTimeout(resolve, 2_000));
  await page.evaluate(() => window.caller.say("yes"));
  await until("tool.finished", "question.dropped");
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
  const told = await page.evaluate(() => window.told);
  await page.evaluate(() => window.call.hangUp());
  const answer = await fetch(`${address}/v1/calls/${id}/events`, { headers: { authorization: `Bearer ${token}` } });
  console.log(JSON.stringify({ told, way, log: await answer.text() }));
} finally {
  await browser.close();
}
