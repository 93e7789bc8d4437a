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
  // While somebody aims at a control, nothing but that control is met.
  let aimed = null;
  const control = () => find(...aimed.wanted);
  const guard = (event) => {
    if (!aimed) return;
    const it = control();
    const met = it && (it.contains(event.target) || it.labels?.[0]?.contains(event.target));
    if (!met) {
      event.stopImmediatePropagation();
      event.preventDefault();
      aimed.missed = true;
    } else if (event.type === "click") {
      aimed.met = true;
    }
  };
  for (const type of ["pointerdown", "mousedown", "touchstart", "click"]) window.addEventListener(type, guard, { capture: true, passive: false });
  /** The middle of a control that has kept its place for a while and that nothing covers. */
  const aim = async (...wanted) => {
    aimed = null;
    const it = find(...wanted);
    if (!it) return null;
    it.scrollIntoView({ block: "center" });
    const middle = () => {
      const box = it.getClientRects()[0];
      return box && [box.left + box.width / 2, box.top + box.height / 2];
    };
    const before = String(middle());
    await new Promise((later) => setTimeout(later, 250));
    if (!it.isConnected || String(middle()) !== before) return null;
    aimed = { wanted };
    return middle();
  };
  /** Whether the hand met it. A tap's click comes a moment after the tap. */
  const met = async () => {
    for (let frames = 0; frames < 60 && !aimed.met && !aimed.missed; frames += 1) await new Promise((next) => requestAnimationFrame(next));
    const done = Boolean(aimed.met && !aimed.missed);
    aimed = null;
    return done;
  };
  window.person = { shows, text, name, controls, find, aim, met };
};

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

  /** Waits until the control is there, and does something with it in the same step: a part that fills is drawn anew. */
  async at(name, kind, act, ...given) {
    const find = `window.person.find(${JSON.stringify(name)}, ${JSON.stringify(kind)})`;
    const done = `((it) => it && { told: (${act})(it, ...${JSON.stringify(given)}) })(${find})`;
    return (await this.page.waitForFunction(done, { timeout: 30_000 })).jsonValue().then(({ told }) => told);
  }

  /** Tab, until the keyboard is there. */
  async walk(name, kind) {
    for (let tabs = 0; tabs < 500; tabs += 1) {
      if (await this.page.evaluate((name, kind) => window.person.find(name, kind) === document.activeElement, name, kind)) return;
      await this.page.keyboard.press("Tab");
    }
    throw new Error(`Tab does not reach ${name}`);
  }

  /** Does something that must meet the control, again until it has: what is drawn anew on the way is missed, as by a hand. */
  async meet(name, kind, gesture) {
    await until(
      `${name} to be met`,
      async () => {
        const place = await this.page.evaluate((name, kind) => window.person.aim(name, kind), name, kind);
        if (!place) return false;
        await gesture(place);
        return this.page.evaluate(() => window.person.met());
      },
      30_000,
    );
  }

  /** Presses a button, a summary or a box. */
  async press(name, kind) {
    this.actions += 1;
    const { hands, page } = this;
    if (hands !== "keyboard") {
      await this.meet(name, kind, ([x, y]) => (hands === "touch" ? page.touchscreen.tap(x, y) : page.mouse.click(x, y)));
      return;
    }
    await this.at(name, kind, () => {});
    await this.walk(name, kind);
    const box = await this.at(name, kind, (element) => element.type === "checkbox");
    await page.keyboard.press(box ? "Space" : "Enter");
  }

  /** Types into a field, over what it holds, and confirms. */
  async fill(name, text) {
    this.actions += 1;
    const kind = "input:not([type=checkbox]), textarea";
    if (this.hands === "keyboard") await this.walk(name, kind);
    await this.at(name, kind, (element) => (element.focus(), element.select()));
    await this.page.keyboard.type(text);
    await this.page.keyboard.press("Enter");
  }

  /** Chooses from a list by what the entry says. */
  async choose(name, entry) {
    this.actions += 1;
    if (this.hands === "keyboard") await this.walk(name, "select");
    const chosen = await this.at(
      name,
      "select",
      (element, entry) => {
        const option = [...element.options].find((option) => option.text.toLowerCase().startsWith(entry.toLowerCase()));
        if (!option) return false;
        element.value = option.value;
        for (const type of ["input", "change"]) element.dispatchEvent(new Event(type, { bubbles: true }));
        return true;
      },
      entry,
    );
    if (!chosen) throw new Error(`${name} has no ${entry}`);
  }

  /** Puts text from elsewhere into a field. */
  async paste(name, text) {
    this.actions += 1;
    await this.at(
      name,
      "input, textarea",
      (element, text) => {
        element.focus();
        element.value = text;
        for (const type of ["input", "change"]) element.dispatchEvent(new Event(type, { bubbles: true }));
      },
      text,
    );
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
