// Everything on the page is operated once: nothing breaks, nothing goes blank, and the keyboard is never lost.
import assert from "node:assert/strict";
import { Person } from "./person.mjs";
import { accessible, test } from "./test.mjs";

const SMALL = "#v=1&dims=layers=2,hidden=128,heads=2&seq=64";

/** In the browser: operates the next controls that have not been yet, for a while; tells their names and what went wrong. */
const CRAWL = () => {
  const { controls, name } = window.person;
  const home = location.href;
  const done = new Set();
  const frame = () => new Promise((next) => requestAnimationFrame(() => setTimeout(next)));
  const settle = async () => {
    await frame();
    await frame();
  };
  const key = (element) => {
    const place = element.closest("section, header, fieldset, details, nav");
    const said = name(element).replace(/[\d.,]+( [KMGT]i?B)?/g, "#").slice(0, 60);
    return `${element.tagName} ${place?.getAttribute("aria-labelledby") ?? place?.id ?? ""} ${said}`;
  };
  const unfold = () => document.querySelectorAll("#app details:not(.menu)").forEach((part) => (part.open = true));
  const sound = (problems, after) => {
    if (!document.querySelector("#verdict")?.innerText.trim()) problems.push(`${after}: the verdict is blank`);
    for (const file of document.querySelectorAll("#files pre")) if (!file.textContent.trim()) problems.push(`${after}: a file is blank`);
    for (const panel of document.querySelectorAll(".panel")) {
      if (window.person.shows(panel) && panel.innerText.trim().length < 3) problems.push(`${after}: the panel ${panel.id} is blank`);
    }
    if (!document.querySelector("#crashed")?.hidden) problems.push(`${after}: the page crashed`);
  };
  const fill = (element, value) => {
    element.value = value;
    for (const type of ["input", "change"]) element.dispatchEvent(new Event(type, { bubbles: true }));
  };
  const operate = async (element, told) => {
    const problems = [];
    element.focus();
    // An answer that arrived meanwhile may have drawn it anew: its successor is operated next.
    if (!element.isConnected) {
      done.delete(told);
      return problems;
    }
    if (element.tagName === "SELECT") {
      for (const option of [...element.options].filter((option) => !option.disabled)) {
        // A choice may have made the list anew.
        fill(element.isConnected ? element : (document.getElementById(element.id) ?? element), option.value);
        await settle();
        sound(problems, option.text);
      }
    } else if (element.matches("textarea, input:not([type=checkbox])")) {
      const before = element.value;
      for (const text of ["", "7", "nonsense", before]) {
        fill(element, text);
        await settle();
        sound(problems, `“${text}”`);
      }
      element.dispatchEvent(new FocusEvent("blur"));
    } else if (element.matches("a[href]") && new URL(element.href).origin !== location.origin) {
      if (!/^https:/.test(element.href)) problems.push(`goes to ${element.href}`);
    } else {
      element.click();
      await settle();
      sound(problems, "pressed");
      if (document.activeElement === document.body) problems.push("the keyboard is lost");
    }
    return problems.map((problem) => `${told}: ${problem}`);
  };
  window.crawl = async (most) => {
    const end = performance.now() + most;
    const wrong = [];
    while (performance.now() < end) {
      const next = controls().find((element) => !element.disabled && !done.has(key(element)));
      if (!next) return { wrong, done: [...done], over: true };
      const told = key(next);
      done.add(told);
      wrong.push(...(await operate(next, told)));
      // The next one finds the page as this one did.
      history.replaceState(null, "", home);
      dispatchEvent(new HashChangeEvent("hashchange"));
      await settle();
      unfold();
    }
    return { wrong, done: [...done], over: false };
  };
  unfold();
};

/** Operates every control of the page as this link opens it. */
async function crawl(visit, fragment, least) {
  const person = await Person.open(visit, fragment);
  await person.page.evaluate(CRAWL);
  for (const panel of ["moves", "planner", "reach", "cards"]) {
    await visit.page.waitForSelector(`[data-testid="${panel}"] [aria-busy=false] tbody tr`);
  }
  const wrong = [];
  let told;
  do {
    told = await person.page.evaluate(() => window.crawl(5_000));
    wrong.push(...told.wrong);
    wrong.push(...visit.heard.splice(0).map((heard) => `${told.done.at(-1)}, or what came before it: ${heard}`));
  } while (!told.over);
  assert.deepEqual(wrong, []);
  assert.ok(told.done.length > least, `${told.done.length} controls:\n${told.done.join("\n")}`);
}

test("every control works, and none loses the keyboard", ({ visit }) => crawl(visit, SMALL, 200), "chrome", 600_000);

/** In the browser: what shows neither files nor what to change, of these presets with every program. */
const blankExports = async (part, parts) => {
  const blank = [];
  const settle = () => new Promise((rest) => setTimeout(rest, 0));
  const pick = async (select, value) => {
    select.value = value;
    select.dispatchEvent(new Event("change", { bubbles: true }));
    await settle();
  };
  const presets = [...document.querySelector("#preset").options].map((option) => option.value).filter(Boolean);
  for (const preset of presets.filter((_, at) => at % parts === part)) {
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
};

// A browser is asked for as long as a slow machine takes for an eighth of them.
const PARTS = 8;
for (let part = 0; part < PARTS; part += 1) {
  test(
    `every program shows files or what to change, for every preset, ${part + 1} of ${PARTS}`,
    async ({ visit }) => {
      const person = await Person.open(visit);
      assert.deepEqual(await person.page.evaluate(blankExports, part, PARTS), []);
      assert.deepEqual(visit.heard, []);
    },
    "chrome",
    900_000,
  );
}

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
        for (const panel of ["moves", "planner", "reach", "cards"]) {
          await visit.page.waitForSelector(`[data-testid="${panel}"] [aria-busy=false] tbody tr`);
        }
        await accessible(visit, `${scheme} ${width}`);
      },
      "chrome",
    );
  }
}
