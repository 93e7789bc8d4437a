// One visit to the page in a real browser, in the words of a person: open, set, read, download.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
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

/** Gives what `ask` gives once that is as expected; what it is instead where it does not come to that. */
export async function becomes(what, ask, expected) {
  let last;
  await until(what, async () => isDeepStrictEqual((last = await ask()), expected)).catch(() => assert.deepEqual(last, expected, what));
}

/** A file's text; nothing where it has gone since it was listed. */
function contentOf(path) {
  try {
    return readFileSync(path, "utf8");
  } catch (problem) {
    if (problem.code === "ENOENT") return undefined;
    throw problem;
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
    // Firefox may stop the service worker at the moment of a navigation, and says so at once or on a page of its own; a person
    // loads again.
    const broken = await go().then(
      () => this.page.evaluate(() => document.documentURI.startsWith("about:neterror")),
      (error) => {
        if (!String(error).includes("NS_ERROR_INTERCEPTION_FAILED")) throw error;
        return true;
      },
    );
    if (broken) await go();
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

  /** Waits for elements, and does something with all of them in the same step: a part that is still filling is drawn anew
   * again and again, and what one step found is gone in the next. `act` runs in the page, with these further arguments. */
  async all(selector, act, ...given) {
    const found = `[...document.querySelectorAll(${JSON.stringify(selector)})]`;
    const done = `((all) => all.length > 0 && { told: (${act})(all, ...${JSON.stringify(given)}) })(${found})`;
    const handle = await this.page.waitForFunction(done);
    return (await handle.jsonValue()).told;
  }

  /** The same with the first of them. */
  at(selector, act, ...given) {
    return this.all(selector, `(all, ...given) => (${act})(all[0], ...given)`, ...given);
  }

  /** Presses the control, the one with these words if there are several. */
  async press(selector, words) {
    const find = `((words) => [...document.querySelectorAll(${JSON.stringify(selector)})].find((it) => words === undefined || it.textContent.trim() === words))`;
    await this.page.waitForFunction(`((it) => it && (it.click(), true))(${find}(${JSON.stringify(words)}))`);
  }

  /** Brings the keyboard to a field, with what it holds selected. */
  focus(selector) {
    return this.at(selector, (it) => {
      it.focus();
      it.select?.();
    });
  }

  /** Types into a field in place of what it holds. */
  async type(selector, text) {
    await this.focus(selector);
    await this.page.keyboard.type(text);
  }

  /** Chooses an entry of a list, once the list has it. */
  async select(selector, value) {
    const choose = (it, value) => {
      if (![...it.options].some((option) => option.value === value)) return false;
      it.value = value;
      for (const kind of ["input", "change"]) it.dispatchEvent(new Event(kind, { bubbles: true }));
      return true;
    };
    await until(`${selector} to have ${value}`, () => this.at(selector, choose, value));
  }

  /** Opens a file by the page's own field for files. */
  async upload(path) {
    await (await this.page.waitForSelector('[data-testid="open-file"]')).uploadFile(path);
  }

  bytes() {
    return this.at('[data-testid="allocated-bytes"][data-bytes]', (it) => Number(it.dataset.bytes));
  }

  /** Fills in one field as a person does, and waits for the answer to follow. */
  async set(path, value) {
    const { page } = this;
    const field = `[name="${path}"]`;
    const before = await this.bytes();
    const kind = await this.at(field, (it) => it.tagName);
    if (kind === "SELECT") {
      await this.select(field, value);
    } else {
      // Not a click: a notice that arrives meanwhile moves what it was aimed at.
      await this.type(field, value);
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
    await this.press(selector);
    // A browser reserves names with empty files of its own, and takes these away again: only one with content has arrived.
    return until("a downloaded file", () => {
      for (const name of readdirSync(this.downloads)) {
        if (before.has(name) || /\.(part|crdownload|tmp)$/.test(name) || name.startsWith(".")) continue;
        const text = contentOf(join(this.downloads, name));
        if (text) return { name, text };
      }
    });
  }

  violations() {
    return this.page.evaluate(() => window.violations);
  }

  async end() {
    await this.context.close();
  }
}
