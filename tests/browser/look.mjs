// What walks through the console share: a browser, how each state is looked at, and what is a fault.

import { mkdirSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const require = createRequire(join(process.env.SAYBACK_BROWSER, "package.json"));
const { chromium } = require("playwright-core");
const axe = require("axe-core").source;

export const WAYS = [
  { name: "light", viewport: { width: 1280, height: 860 }, colorScheme: "light" },
  { name: "dark", viewport: { width: 1280, height: 860 }, colorScheme: "dark" },
  { name: "phone", viewport: { width: 390, height: 844 }, colorScheme: "light", hasTouch: true, isMobile: true },
];
export const PATIENCE = 30_000;

export const launch = () =>
  chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--autoplay-policy=no-user-gesture-required"],
  });

/** Looks at pages, and keeps what is wrong with them. `own` are the addresses that a page may ask. */
export class Looker {
  constructor(browser, pictures, own) {
    Object.assign(this, { browser, pictures, own, faults: [], way: WAYS[0] });
    mkdirSync(pictures, { recursive: true });
  }

  /** A page that shows the console in a way; `script` is put into it before anything else. */
  async open(way, script) {
    this.way = way;
    const context = await this.browser.newContext({ ...way, bypassCSP: false, acceptDownloads: true });
    // Put there by the browser itself, so that the page's policy does not have to let it in.
    await context.addInitScript({ content: axe });
    if (script) await context.addInitScript({ content: script });
    const page = await context.newPage();
    page.setDefaultTimeout(PATIENCE);
    page.on("request", (request) => {
      const url = request.url();
      if (!this.own.some((own) => url.startsWith(own)) && !url.startsWith("blob:")) this.fault(`a request left the host: ${url}`);
    });
    page.on("pageerror", (error) => this.fault(`${error}`));
    page.on("console", (message) => {
      // A token that is asked for, and one that is refused, are answers that are wanted.
      const wanted = message.text().includes("401");
      if (message.type() === "error" && !wanted) this.fault(`${message.text()} ${message.location().url}`);
    });
    return page;
  }

  fault(text) {
    this.faults.push(`${this.way.name}: ${text}`);
  }

  /** A state: looked at for barriers and for width, and kept as a picture. */
  async look(page, name) {
    const found = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
    for (const { id, help, nodes } of found.violations) {
      this.fault(`${name}: ${id}: ${help}: ${nodes.map((node) => `${node.target} ${node.failureSummary ?? ""}`).join("; ")}`);
    }
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    if (wide > 0) this.fault(`${name}: ${wide} pixels wider than the screen`);
    await this.picture(page, name);
  }

  picture(page, name) {
    return page.screenshot({ path: join(this.pictures, `${this.way.name}-${name}.png`), fullPage: true });
  }

  /** Does parts of a walk one after the other; where one fails, how the page looked then is kept. */
  async walk(page, parts) {
    for (const part of parts) {
      try {
        await part(page);
      } catch (error) {
        await this.picture(page, `failed-${part.name}`).catch(() => {});
        for (const fault of this.faults) console.error(fault);
        throw error;
      }
    }
  }

  /** Closes the browser and tells what was wrong. */
  async close() {
    await this.browser.close();
    for (const fault of this.faults) console.error(fault);
    process.exitCode = this.faults.length > 0 ? 1 : 0;
  }
}

/** Waits until the banner says something. */
export const banner = (page, text) => page.locator(".banner .title", { hasText: text }).first().waitFor({ timeout: PATIENCE });
