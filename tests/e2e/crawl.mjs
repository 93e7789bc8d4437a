// Everything on the page is operated once: nothing breaks, nothing goes blank, and the keyboard is never lost.
import assert from "node:assert/strict";
import { Person } from "./person.mjs";
import { accessible, test } from "./test.mjs";

const SMALL = "#v=1&dims=layers=2,hidden=128,heads=2&seq=64";

/** Operates the next control that has not been yet; tells its name and what went wrong. */
const operateOne = (visit, done) =>
  visit.page.evaluate(async (done) => {
    const { controls, name } = window.person;
    const key = (element) => {
      const place = element.closest("section, header, fieldset, details, nav")?.getAttribute("aria-labelledby") ?? element.closest("section, nav")?.id ?? "";
      return `${element.tagName} ${place} ${name(element).replace(/[\d.,]+( [KMGT]i?B)?/g, "#").slice(0, 60)}`;
    };
    const next = controls().find((element) => !element.disabled && !done.includes(key(element)));
    if (!next) return null;
    const told = key(next);
    const problems = [];
    const settle = () => new Promise((rest) => setTimeout(rest, 120));
    next.focus();
    if (next.tagName === "SELECT") {
      for (const option of [...next.options]) {
        next.value = option.value;
        next.dispatchEvent(new Event("change", { bubbles: true }));
        await settle();
        if (!document.querySelector("#verdict")?.innerText.trim()) problems.push(`${option.text}: the verdict is blank`);
      }
    } else if (next.matches("textarea, input:not([type=checkbox])")) {
      const before = next.value;
      for (const text of ["", "7", before]) {
        next.value = text;
        next.dispatchEvent(new Event("input", { bubbles: true }));
        next.dispatchEvent(new Event("change", { bubbles: true }));
        await settle();
      }
    } else {
      next.click();
      await settle();
      await settle();
      if (document.activeElement === document.body) problems.push("the keyboard is lost");
    }
    if (!document.querySelector("#verdict")?.innerText.trim()) problems.push("the verdict is blank");
    if (!document.querySelector("#crashed")?.hidden) problems.push("the page crashed");
    return { key: told, problems };
  }, done);

test(
  "every control works, and none loses the keyboard",
  async ({ visit }) => {
    const person = await Person.open(visit, SMALL);
    await person.page.evaluate(() => document.querySelectorAll("#app details:not(.menu)").forEach((part) => (part.open = true)));
    const done = [];
    const wrong = [];
    for (let at = 0; at < 900; at += 1) {
      const told = await operateOne(visit, done);
      if (!told) break;
      done.push(told.key);
      wrong.push(...told.problems.map((problem) => `${told.key}: ${problem}`));
      wrong.push(...visit.heard.splice(0).map((heard) => `${told.key}: ${heard}`));
    }
    assert.ok(done.length > 120, `${done.length} controls`);
    assert.deepEqual(wrong, []);
  },
  "chrome",
  900_000,
);

test(
  "every program shows files or what to change, for every preset",
  async ({ visit }) => {
    const person = await Person.open(visit);
    const blank = await person.page.evaluate(async () => {
      const blank = [];
      const settle = () => new Promise((rest) => setTimeout(rest, 0));
      const pick = async (select, value) => {
        select.value = value;
        select.dispatchEvent(new Event("change", { bubbles: true }));
        await settle();
      };
      const presets = document.querySelector("#preset");
      for (const preset of [...presets.options].map((option) => option.value).filter(Boolean)) {
        await pick(document.querySelector("#preset"), preset);
        const targets = document.querySelector("#export-target");
        for (const target of [...targets.options].map((option) => option.value)) {
          await pick(document.querySelector("#export-target"), target);
          const files = [...document.querySelectorAll("#files pre")];
          const fine = files.length > 0 ? files.every((file) => file.textContent.trim()) : document.querySelector(".remedies li");
          if (!fine) blank.push(`${target} of ${preset}`);
        }
      }
      return blank;
    });
    assert.deepEqual(blank, []);
    assert.deepEqual(visit.heard, []);
  },
  undefined,
  900_000,
);

test(
  "the archive of all programs is never empty",
  async ({ visit }) => {
    await Person.open(visit, "#v=1&network=sizes,width=8%3Binput,kind=values,shape=batch:4:width%3Bpart,name=body%3Bmlp,width=4*width");
    const { name, text } = await visit.download('[data-testid="export-zip"]');
    assert.equal(name, "headroom.zip");
    assert.match(text, /scenario\.yaml/);
  },
);

for (const width of [1440, 768, 360]) {
  for (const scheme of ["light", "dark"]) {
    test(
      `axe finds nothing to mend at ${width}, ${scheme}, everything open`,
      async ({ visit }) => {
        await visit.page.setViewport({ width, height: 900 });
        await visit.page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
        await Person.open(visit, `${SMALL}&mb=4&vs&mb=8`);
        await visit.page.evaluate(() => document.querySelectorAll("details").forEach((part) => (part.open = true)));
        for (const panel of ["moves", "tiers", "gpus", "solve"]) {
          await visit.page.waitForSelector(`[data-testid="${panel}"] [aria-busy=false] tbody tr`);
        }
        await accessible(visit, `${scheme} ${width}`);
      },
      "chrome",
    );
  }
}
