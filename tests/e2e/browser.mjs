// One visit to the page in a real browser, in the words of a person: open, set, read, download.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import puppeteer from "puppeteer-core";

const CHROME_FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--disable-dev-shm-usage",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

export function launch(kind, executablePath) {
  return puppeteer.launch({
    browser: kind,
    executablePath,
    headless: true,
    protocolTimeout: 300_000,
    args: kind === "chrome" ? CHROME_FLAGS : [],
  });
}

// A wait ends when what it waits for is there; only a failure takes this long, so that a slow machine is none.
const LONGEST_WAIT = 90_000;

/** Waits until `ask` gives something true, and gives that. */
export async function until(what, ask, limit = LONGEST_WAIT) {
  const end = Date.now() + limit;
  for (;;) {
    const answer = await ask();
    if (answer) return answer;
    if (Date.now() > end) throw new Error(`waited ${limit / 1000} s for ${what}`);
    await new Promise((again) => setTimeout(again, 50));
  }
}

export class Visit {
  /** What the browser complained about, in order. */
  heard = [];
  /** Addresses that pages asked for, the network or not. */
  asked = [];

  static async begin(browser, site, downloads) {
    const visit = new Visit();
    Object.assign(visit, { browser, site, downloads });
    const downloadBehavior = { policy: "allow", downloadPath: downloads };
    visit.context = await browser.createBrowserContext({ downloadBehavior });
    visit.page = await visit.newPage();
    return visit;
  }

  async newPage() {
    const page = await this.context.newPage();
    await page.setViewport({ width: 1280, height: 900 });
    page.setDefaultTimeout(LONGEST_WAIT);
    page.on("console", (it) => {
      if (it.type() === "error") this.heard.push(it.text());
    });
    page.on("pageerror", (it) => this.heard.push(String(it)));
    page.on("request", (it) => this.asked.push(it.url()));
    await page.evaluateOnNewDocument(() => {
      window.violations = [];
      document.addEventListener("securitypolicyviolation", (it) => {
        window.violations.push(`${it.effectiveDirective} forbids ${it.blockedURI} at ${it.sourceFile}:${it.lineNumber}`);
      });
    });
    return page;
  }

  async open(address = this.site.url) {
    const go = () => this.page.goto(address, { waitUntil: "load" });
    await go().catch((error) => {
      // Firefox may stop the service worker at the moment of a navigation; a person loads again.
      if (!String(error).includes("NS_ERROR_INTERCEPTION_FAILED")) throw error;
      return go();
    });
    await this.started();
  }

  async reload() {
    await this.page.reload({ waitUntil: "load" });
    await this.started();
  }

  /** The page has been drawn and has answered. */
  async started() {
    await this.page.waitForSelector("html[data-started]");
    await this.page.waitForSelector('[data-testid="allocated-bytes"][data-bytes]');
    // The panels beneath the answer come when it has been painted.
    await this.page.waitForSelector("#answers:not(:has(slot))");
  }

  /** The offline copy is whole, and this page is served from it. */
  async kept() {
    await this.page.waitForFunction(async () => {
      await navigator.serviceWorker.ready; // in the browser
      return navigator.serviceWorker.controller?.state === "activated"; // in the browser
    });
  }

  bytes() {
    return this.page.$eval('[data-testid="allocated-bytes"]', (it) => Number(it.dataset.bytes));
  }

  /** Fills in one field as a person does, and waits for the answer to follow. */
  async set(path, value) {
    const { page } = this;
    const field = `[name="${path}"]`;
    const before = await this.bytes();
    const kind = await page.$eval(field, (it) => it.tagName);
    if (kind === "SELECT") {
      await page.select(field, value);
    } else {
      // Not a click: a notice that arrives meanwhile moves what it was aimed at.
      await page.$eval(field, (it) => (it.focus(), it.select()));
      await page.keyboard.type(value);
      await page.keyboard.press("Tab");
    }
    await until(`another answer after ${path} became ${value}`, async () => (await this.bytes()) !== before);
  }

  /** All that a scenario puts on the screen: every field and every answer, without what follows the pointer. */
  screen() {
    return this.page.evaluate(() => ({
      fields: [...document.querySelectorAll("#app [name]")].map((it) => [it.name, it.type === "checkbox" ? it.checked : it.value]),
      answers: ["#verdict", ".three", '[data-testid="breakdown"]', "pre"].map((part) =>
        [...document.querySelectorAll(part)].map((it) => it.innerText),
      ),
      timeline: [...document.querySelectorAll('[data-testid="timeline"] path')].map((it) => it.getAttribute("d")),
    }));
  }

  /** The address, once it holds this text. */
  address(text) {
    return until(`an address with ${text}`, async () => {
      const address = await this.page.evaluate(() => location.href);
      return address.includes(text) && address;
    });
  }

  visible(selector) {
    return this.page.waitForSelector(selector, { visible: true });
  }

  /** The control keeps its place: one that moves is missed by the pointer. */
  async still(selector) {
    let last;
    await until(`${selector} to keep its place`, async () => {
      const box = JSON.stringify(await (await this.page.$(selector))?.boundingBox());
      const isStill = box !== undefined && box === last;
      last = box;
      return isStill;
    });
  }

  /** Clicks, and gives the name and the text of the file that arrives. */
  async download(selector) {
    const before = new Set(readdirSync(this.downloads));
    await this.still(selector);
    await this.page.click(selector);
    const name = await until("a downloaded file", () =>
      readdirSync(this.downloads).find((it) => !before.has(it) && !/\.(part|crdownload|tmp)$/.test(it) && !it.startsWith(".")),
    );
    const text = await until(`${name} to have content`, () => readFileSync(join(this.downloads, name), "utf8"));
    return { name, text };
  }

  violations() {
    return this.page.evaluate(() => window.violations);
  }

  async end() {
    await this.context.close();
  }
}
