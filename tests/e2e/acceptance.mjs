// What anybody could check: links, tabs, keyboard, small screens, paper, and each thing the page hands out.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { becomes, until } from "./browser.mjs";
import { accessible, allocated, headroom, test, unfold } from "./test.mjs";

const text = (visit, selector) => visit.at(selector, (it) => it.innerText);
const value = (visit, path) => visit.at(`[name="${path}"]`, (it) => (it.type === "checkbox" ? (it.checked ? "on" : "off") : it.value));
const rest = (ms) => new Promise((done) => setTimeout(done, ms));

test("nonsense in a link is said, and the rest of the link holds", async ({ visit }) => {
  await visit.open(`${visit.site.url}#v=1&data=1&gpu=nonsense-9000&mb=3&seq=256&colour=red`);
  assert.match(await text(visit, ".verdict"), /hardware\.gpu|nonsense-9000/);
  assert.match(await text(visit, ".verdict"), /colour/);
  assert.equal(await value(visit, "data.micro_batch"), "3");
  assert.equal(await value(visit, "data.sequence"), "256");
  assert.deepEqual(visit.heard, []);
});

test("a link of each version opens as it was meant", async ({ visit }) => {
  const lines = readFileSync(new URL("../links.txt", import.meta.url), "utf8").split("\n");
  const published = lines.filter((it) => it && !it.startsWith("#")).map((it) => it.split(" -> "));
  assert.ok(published.length > 10);
  await visit.open();
  for (const [link, meaning] of published) {
    // The page writes its own link a quarter of a second after an answer, and would write over this one.
    await rest(400);
    await visit.page.evaluate((it) => (location.hash = it), link);
    for (const pair of meaning.split(" ")) {
      const [path, ...said] = pair.split("=");
      const expected = said.join("=").replaceAll("%20", " ").replaceAll("%26", "&");
      // A catalogue's entry is shown by its name.
      if (["model.id", "hardware.gpu"].includes(path) && (await value(visit, path)) !== expected) continue;
      await until(`${path} to be ${expected} of ${link}`, async () => Number(await value(visit, path)) === Number(expected) || (await value(visit, path)) === expected);
    }
  }
  assert.equal(await visit.at("#crashed", (it) => it.hidden), true);
  assert.deepEqual(visit.heard, []);
});

test("two tabs keep a scenario each, and a new one starts where the last was worked on", async ({ visit }) => {
  await visit.open();
  await visit.set("data.micro_batch", "2");
  await visit.address("mb=2");
  const first = visit.page;
  visit.page = await visit.newPage();
  await visit.open(`${visit.site.url}#v=1&mb=5`);
  await visit.set("data.sequence", "256");
  await visit.address("seq=256");
  const second = visit.page;
  // A browser slows down what nobody looks at.
  const lookAt = async (page) => {
    visit.page = page;
    await page.bringToFront();
  };

  // Without a link a tab has its own draft, whatever the other one did since.
  await lookAt(first);
  await visit.open(`${visit.site.url}?again`);
  assert.equal(await value(visit, "data.micro_batch"), "2");
  await lookAt(second);
  assert.equal(await value(visit, "data.micro_batch"), "5");
  await visit.open(`${visit.site.url}?again`);
  assert.deepEqual([await value(visit, "data.micro_batch"), await value(visit, "data.sequence")], ["5", "256"]);
  await second.close();
  visit.page = await visit.newPage();
  await visit.open();
  assert.equal(await value(visit, "data.micro_batch"), "5");
});

test("everything can be reached and worked by keyboard alone", async ({ visit }) => {
  const { page } = visit;
  const { keyboard } = page;
  await visit.open(`${visit.site.url}#v=1&dims=layers=2,hidden=128,heads=2&seq=64`);
  await page.evaluate(() => document.querySelectorAll("details:not(.menu)").forEach((it) => (it.open = true)));
  await page.waitForSelector('[data-testid="cards"] [aria-busy=false] tbody tr');
  await page.waitForSelector('[data-testid="moves"] [aria-busy=false] tbody tr');

  // Tab goes through every control that shows, in the order of the page, and lets go of each.
  const reached = await page.evaluate(() => {
    const shows = (it) => it.checkVisibility({ visibilityProperty: true }) && !it.disabled && it.tabIndex >= 0;
    const all = [...document.querySelectorAll("#app :is(button, input, select, textarea, summary, a[href], [tabindex])")].filter(shows);
    all.forEach((it, at) => (it.dataset.stop = at));
    document.activeElement?.blur();
    return all.length;
  });
  assert.ok(reached > 150, `${reached} controls`);
  const seen = new Set();
  let last = -1;
  for (let at = 0; at < reached + 20 && seen.size < reached; at += 1) {
    await keyboard.press("Tab");
    const stop = await page.evaluate(() => document.activeElement.dataset.stop);
    if (stop === undefined) continue;
    assert.ok(Number(stop) > last || seen.has(stop), `${stop} after ${last}`);
    last = Number(stop);
    seen.add(stop);
  }
  const missed = await page.evaluate(
    (seen) => [...document.querySelectorAll("[data-stop]")].filter((it) => !seen.includes(it.dataset.stop)).map((it) => it.outerHTML.slice(0, 120)),
    [...seen],
  );
  assert.deepEqual(missed, []);

  // A list that searches: words, arrows, Enter. What comes of it is spoken.
  const said = () => text(visit, '[role="status"][aria-live="polite"].aside');
  const before = await said();
  await page.evaluate(() => document.activeElement.blur());
  await keyboard.press("/");
  assert.equal(await page.evaluate(() => document.activeElement.id), "find-setting");
  await visit.focus('[name="model.id"]');
  await keyboard.type("bert base uncased");
  await keyboard.press("Enter");
  await visit.address("model=bert-base-uncased");
  await until("the answer to be spoken", async () => (await said()) !== before && /Needs/.test(await said()));
  // Undo from anywhere outside fields.
  await page.evaluate(() => document.activeElement.blur());
  await keyboard.down("Control");
  await keyboard.press("z");
  await keyboard.up("Control");
  await until("the model before", async () => !(await page.evaluate(() => location.hash)).includes("bert"));
  // Switches, choices, columns and menus.
  await visit.focus('[name="training.lora"]');
  await keyboard.press("Space");
  await visit.address("lora=on");
  await page.waitForSelector('[data-testid="cards"] [aria-busy=false] [data-sort="1"]');
  await visit.focus('[data-testid="cards"] [data-sort="1"]');
  await keyboard.press("Enter");
  await page.waitForSelector('[data-testid="cards"] th[aria-sort="ascending"]');
  await until("the column's head to keep the keyboard", () => page.evaluate(() => document.activeElement.dataset.sort === "1"));
  const cards = () => visit.all('[data-testid="cards"] tbody [data-head="Needs"]', (all) => all.map((it) => it.innerText));
  const up = await cards();
  await keyboard.press("Enter");
  await page.waitForSelector('[data-testid="cards"] th[aria-sort="descending"]');
  await becomes("the column in the other order", cards, up.reverse());
  await visit.focus('[data-testid="share"] summary');
  await keyboard.press("Enter");
  await page.waitForSelector('[data-testid="share"][open]');
  await keyboard.press("Escape");
  await page.waitForSelector('[data-testid="share"]:not([open])');
  assert.equal(await page.evaluate(() => document.activeElement.tagName), "SUMMARY");
  assert.deepEqual(visit.heard, []);
}, "chrome");

test("what is shared says when and with what it was made, and opens again", async ({ visit }) => {
  const { page } = visit;
  await visit.open();
  await visit.set("data.micro_batch", "3");
  await visit.address("mb=3");
  const bytes = await visit.bytes();
  const today = new Date().toISOString().slice(0, 10);
  const files = [];
  for (const kind of ["yaml", "sh", "svg"]) {
    await visit.press('[data-testid="share"] summary');
    const { name, text } = await visit.download(`[data-share="${kind}"]`);
    assert.ok(name.endsWith(`.${kind}`) && text.includes(today) && text.includes("mb=3") && text.includes("data 1"), text);
    files.push(name);
  }
  assert.equal(allocated(readFileSync(join(visit.downloads, files[0]), "utf8")), bytes);
  for (const name of files) {
    await visit.set("data.micro_batch", "5");
    await visit.upload(join(visit.downloads, name));
    await until(`the run of ${name}`, async () => (await visit.bytes()) === bytes);
  }
  assert.deepEqual(await visit.violations(), []);
  assert.deepEqual(visit.heard, []);
});

test("a layer shows its tensors, their shapes and what keeps them", async ({ visit }) => {
  await visit.open();
  await unfold(visit, "modules");
  const rows = '[data-testid="inside"] tbody tr';
  await visit.page.waitForSelector(rows);
  await visit.select("#inside", "transformer.h.*.attn.c_attn");
  await visit.page.waitForFunction(
    (rows) => [...document.querySelectorAll(rows)].some((it) => /8192 × 2304\s+bfloat16\s+backward of flash_attention\s+12/.test(it.innerText)),
    {},
    rows,
  );
});

test(
  "paper takes one page with the sentence, the assumptions, the command and the link",
  async ({ visit }) => {
    await visit.open();
    const pages = async () => {
      const pdf = Buffer.from(await visit.page.pdf({ format: "A4", printBackground: true })).toString("latin1");
      return Number(/\/Count (\d+)/.exec(pdf)[1]);
    };
    assert.equal(await pages(), 1);
    const printed = await visit.at(".printed", (it) => it.textContent);
    assert.match(printed, /Not modelled/);
    assert.match(printed, /torchrun/);
    assert.match(printed, /#v=1/);
    await visit.select("#preset", "dreams");
    await visit.page.waitForSelector('[data-testid="guide"]:not([hidden])');
    assert.equal(await pages(), 1);
  },
  "chrome",
);

/** Nothing is wider than the screen, and what scrolls by itself is meant to. */
const fits = async (visit, what) => {
  const wide = await visit.page.evaluate(() => {
    const most = document.documentElement.clientWidth;
    if (document.documentElement.scrollWidth <= most) return [];
    const all = [...document.querySelectorAll("#app *")].filter((it) => it.getBoundingClientRect().right > most + 1 && !it.closest(".scroller"));
    return all.slice(0, 5).map((it) => it.outerHTML.slice(0, 120));
  });
  assert.deepEqual(wide, [], what);
};

test("at 320 pixels, and at twice the size, nothing scrolls sideways and nothing is lost", async ({ visit }) => {
  const { page } = visit;
  // Twice the size of 1280 by 900 is half as many pixels of CSS.
  for (const [width, height] of [
    [320, 640],
    [640, 450],
  ]) {
    await page.setViewport({ width, height });
    await visit.open(`${visit.site.url}#v=1&network=sizes,width=8%3Binput,kind=values,shape=batch:4:width%3Bpart,name=body%3Bmlp,width=4*width`);
    await fits(visit, `${width} as opened`);
    await page.evaluate(() => document.querySelectorAll("details").forEach((it) => (it.open = true)));
    await page.waitForSelector("#network-rows li");
    await page.waitForSelector('[data-testid="cards"] [aria-busy=false] tbody tr');
    await fits(visit, `${width} unfolded`);
    // The answer stays in sight while the questions scroll.
    if (width <= 800) {
      await page.evaluate(() => scrollTo(0, 300));
      assert.ok(await visit.at(".verdict-bar", (it) => it.getBoundingClientRect().bottom <= innerHeight + 1));
    }
  }
});

test("axe finds nothing to mend in panels that are full", async ({ visit }) => {
  const { page } = visit;
  await visit.open(`${visit.site.url}#v=1&dims=layers=2,hidden=128,heads=2&seq=64&mb=4&vs&v=1`);
  await visit.all("[data-testid=keep]", (all) => all.forEach((it) => it.click()));
  await page.evaluate(() => document.querySelectorAll("details").forEach((it) => (it.open = true)));
  await visit.press('[data-example="1"]');
  await visit.type("#doctor", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.64 GiB of which 1.00 GiB is free.");
  for (const panel of ["moves", "planner", "reach", "cards"]) {
    await page.waitForSelector(`[data-testid="${panel}"] [aria-busy=false] tbody tr`);
  }
  await accessible(visit, "full");
  assert.deepEqual(visit.heard, []);
});
