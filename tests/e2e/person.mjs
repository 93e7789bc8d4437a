// A person at the page: finds things by what they read, and counts what they do.
import { until } from "./browser.mjs";

/** In the browser: the names of controls as a person or a screen reader has them. */
const IN_PAGE = () => {
  const shows = (element) => element.checkVisibility({ visibilityProperty: true }) && element.getClientRects().length > 0;
  const text = (element) => (element?.innerText ?? element?.textContent ?? "").replace(/\s+/g, " ").trim();
  const name = (element) => {
    const labelled = element.getAttribute("aria-labelledby");
    if (element.getAttribute("aria-label")) return element.getAttribute("aria-label");
    if (labelled) return labelled.split(" ").map((id) => text(document.getElementById(id))).join(" ");
    if (element.labels?.length) {
      const label = element.labels[0].cloneNode(true);
      label.querySelectorAll("select, input, textarea").forEach((control) => control.remove());
      return text(label) || element.labels[0].textContent.trim();
    }
    return text(element);
  };
  const CONTROLS = "button, input:not([type=file]), select, textarea, summary, a[href]";
  const controls = () => [...document.querySelectorAll("#app :is(button, input:not([type=file]), select, textarea, summary, a[href])")].filter(shows);
  const find = (wanted, kind = CONTROLS) => {
    const all = controls().filter((element) => element.matches(kind) && !element.disabled);
    const lower = wanted.toLowerCase();
    const exact = all.find((element) => name(element).toLowerCase() === lower);
    return exact ?? all.find((element) => name(element).toLowerCase().startsWith(lower)) ?? null;
  };
  window.person = { shows, text, name, controls, find };
};

/** Whether an element has kept its place for a while, so that a hand on its way to it meets it. */
async function resting(element) {
  element.scrollIntoView({ block: "center" });
  const top = element.getBoundingClientRect().top;
  await new Promise((later) => setTimeout(later, 250));
  return element.getBoundingClientRect().top === top;
}

export class Person {
  actions = 0;
  /** What was put on the clipboard last. */
  copied = "";

  /** `hands` says how they work: with a mouse, with the keyboard alone, or by touch. */
  constructor(visit, hands = "mouse") {
    Object.assign(this, { visit, hands, page: visit.page });
  }

  static async open(visit, fragment = "", hands = "mouse") {
    const person = new Person(visit, hands);
    if (hands === "touch") await visit.page.setViewport({ width: 360, height: 740, hasTouch: true, isMobile: visit.page.browser().process()?.spawnfile.includes("chrom") });
    await visit.page.evaluateOnNewDocument(() => {
      window.print = () => {};
      // Firefox runs this in its empty first document too, which has no clipboard.
      const clipboard = navigator.clipboard ?? {}; // in the browser
      clipboard.writeText = async (text) => void (window.copied = text);
    });
    await visit.page.evaluateOnNewDocument(IN_PAGE);
    await visit.open(`${visit.site.url}${fragment}`);
    return person;
  }

  handle(name, kind) {
    return until(`a control named ${name}`, async () => {
      const handle = await this.page.evaluateHandle((name, kind) => window.person.find(name, kind), name, kind);
      return handle.asElement();
    }, 30_000);
  }

  /** Brings the keyboard there, or the pointer. */
  async reach(name, kind) {
    const handle = await this.handle(name, kind);
    if (this.hands !== "keyboard") {
      await until(`${name} to stay in its place`, () => handle.evaluate(resting), 30_000);
      return handle;
    }
    for (let tabs = 0; tabs < 500; tabs += 1) {
      const there = await this.page.evaluate((name, kind) => window.person.find(name, kind) === document.activeElement, name, kind);
      if (there) return this.handle(name, kind);
      await this.page.keyboard.press("Tab");
    }
    throw new Error(`Tab does not reach ${name}`);
  }

  /** Presses a button, a summary or a box. */
  async press(name, kind) {
    this.actions += 1;
    const handle = await this.reach(name, kind);
    if (this.hands === "keyboard") {
      const box = await handle.evaluate((element) => element.type === "checkbox");
      await this.page.keyboard.press(box ? "Space" : "Enter");
    } else if (this.hands === "touch") {
      await handle.tap();
    } else {
      await handle.click();
    }
  }

  /** Types into a field, over what it holds, and confirms. */
  async fill(name, text) {
    this.actions += 1;
    const handle = await this.reach(name, "input:not([type=checkbox]), textarea");
    if (this.hands === "touch") await handle.tap();
    else if (this.hands === "mouse") await handle.click();
    await handle.evaluate((element) => (element.focus(), element.select()));
    await this.page.keyboard.type(text);
    await this.page.keyboard.press("Enter");
  }

  /** Chooses from a list by what the entry says. */
  async choose(name, entry) {
    this.actions += 1;
    const handle = await this.reach(name, "select");
    const value = await handle.evaluate((element, entry) => [...element.options].find((option) => option.text.toLowerCase().startsWith(entry.toLowerCase()))?.value, entry);
    if (value === undefined) throw new Error(`${name} has no ${entry}`);
    await handle.select(value);
  }

  /** Puts text from elsewhere into a field. */
  async paste(name, text) {
    this.actions += 1;
    const handle = await this.reach(name, "input, textarea");
    await handle.evaluate((element, text) => {
      element.focus();
      element.value = text;
      element.dispatchEvent(new Event("input", { bubbles: true }));
      element.dispatchEvent(new Event("change", { bubbles: true }));
    }, text);
  }

  clipboard() {
    return until("something on the clipboard", () => this.page.evaluate(() => window.copied), 30_000);
  }

  /** All that can be read now. */
  text() {
    return this.page.$eval("#app", (element) => element.innerText.replace(/\s+/g, " "));
  }

  reads(words) {
    return until(`the page to say ${words}`, async () => words.test(await this.text()), 60_000);
  }

  /** Whether words can be read without scrolling from the top. */
  async onScreenOne(words) {
    await this.page.evaluate(() => scrollTo(0, 0));
    return this.page.evaluate((source) => {
      const words = new RegExp(source);
      const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_ELEMENT);
      let found = false;
      while (walk.nextNode()) {
        const element = walk.currentNode;
        if (element.children.length > 3 || !words.test(element.textContent)) continue;
        const box = element.getBoundingClientRect();
        found ||= box.height > 0 && box.bottom <= innerHeight && box.top >= 0;
      }
      return found;
    }, words.source);
  }
}
