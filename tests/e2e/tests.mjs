// What only a browser shows. Everything else is tested without one.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import axe from "axe-core";
import { until } from "./browser.mjs";

export const tests = [];
const test = (name, run, only) => tests.push({ name, run, only });

/** The command line over the same library; it ends with 1 where the answer is "does not fit". */
const headroom = (args, input) => {
  try {
    return execFileSync(process.env.HEADROOM, args, { input, encoding: "utf8" });
  } catch (problem) {
    if (problem.status === 1) return problem.stdout;
    throw problem;
  }
};
const allocated = (yaml) => JSON.parse(headroom(["estimate", "-", "--json"], yaml)).allocated.expected;

test("the page answers, and says the command line's number for the same scenario", async ({ visit }) => {
  await visit.open();
  assert.match(await visit.page.$eval("#verdict", (it) => it.innerText), /\d/);
  const check = async (text) => {
    const link = await visit.address(text);
    assert.equal(await visit.bytes(), allocated(headroom(["open", link])), link);
  };
  assert.equal(await visit.bytes(), allocated(headroom(["open", "#v=1"])));
  await visit.set("data.micro_batch", "3");
  await check("mb=3");
  await visit.set("data.sequence", "512");
  await check("512");
  await visit.set("training.precision", "fp32");
  await check("fp32");
  await visit.set("training.optimizer", "sgd");
  await check("sgd");
});

test("a link gives the same screen, in the same visit and in another's", async ({ visit }) => {
  await visit.open();
  await visit.set("data.micro_batch", "2");
  await visit.set("training.optimizer", "sgd");
  await visit.set("training.precision", "bf16");
  const link = await visit.address("bf16");
  const screen = await visit.screen();

  await visit.reload();
  assert.deepEqual(await visit.screen(), screen);

  // Nothing but the link is shared: its storage is cleared.
  await visit.page.evaluate(() => localStorage.clear());
  visit.page = await visit.newPage();
  await visit.open(link);
  assert.deepEqual(await visit.screen(), screen);
});

test("with the server gone, a reload still works and exports", async ({ visit, site }) => {
  await visit.open();
  await visit.set("data.micro_batch", "2");
  await visit.address("mb=2");
  await visit.kept();
  const screen = await visit.screen();
  await site.close();

  await visit.reload();
  assert.deepEqual(await visit.screen(), screen);
  await visit.set("data.sequence", "256");
  const { name, text } = await visit.download('[data-testid="export-yaml"]');
  assert.match(name, /\.ya?ml$/);
  assert.match(text, /256/);
  // The file carries the link, and the link is the screen.
  const link = /\S*#\S+/.exec(text)?.[0];
  assert.ok(link, `expected a link in\n${text}`);
  assert.equal(allocated(headroom(["open", link])), await visit.bytes());
});

test("the first visit says that the page works offline", async ({ visit }) => {
  await visit.open();
  await visit.visible("#offline-notice");
});

test("no request leaves the page after it has loaded", async ({ visit, site }) => {
  await visit.open();
  await visit.kept();
  await visit.visible("#offline-notice");
  const [served, asked] = [site.requests.length, visit.asked.length];

  await visit.set("data.micro_batch", "5");
  await visit.set("training.precision", "bf16");
  await visit.download('[data-testid="export-yaml"]');
  await visit.page.click('[data-testid="copy-link"]');
  await visit.address("bf16");

  assert.deepEqual(site.requests.slice(served), []);
  // What the browser asks of its offline copy (its tab's icon, say) reaches no network; nothing may go elsewhere.
  const elsewhere = (it) => !/^(blob|data):/.test(it) && !it.startsWith(site.url);
  assert.deepEqual(visit.asked.slice(asked).filter(elsewhere), []);
});

test("the page keeps its own policy, and logs no error", async ({ visit }) => {
  await visit.open();
  await visit.kept();
  const policy = await visit.page.$eval("meta[http-equiv=Content-Security-Policy]", (it) => it.content);
  assert.ok(policy.startsWith("default-src 'none'") && !policy.includes("unsafe-inline"), policy);
  await visit.set("data.micro_batch", "4");
  await visit.set("training.optimizer", "sgd");
  await visit.download('[data-testid="export-yaml"]');
  await visit.page.click('[data-testid="copy-link"]');
  assert.deepEqual(await visit.violations(), []);
  assert.deepEqual(visit.heard, []);
});

async function accessible(visit, scheme) {
  await visit.page.evaluate(axe.source);
  const found = await visit.page.evaluate(() => axe.run(document));
  const told = found.violations.map((it) => `${scheme} ${it.id}: ${it.help}\n  ${it.nodes.map((node) => node.html).join("\n  ")}`);
  assert.deepEqual(told, []);
}

test("axe finds nothing to mend", async ({ visit }) => {
  await visit.open();
  await accessible(visit, "as opened");
  // Folded parts are parts of the page too.
  await visit.page.evaluate(() => document.querySelectorAll("details").forEach((it) => (it.open = true)));
  await accessible(visit, "unfolded");
});

test(
  "axe finds nothing to mend in the dark either",
  async ({ visit }) => {
    await visit.page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: "dark" }]);
    await visit.open();
    const colour = () => visit.page.evaluate(() => getComputedStyle(document.body).color);
    const dark = await colour();
    await accessible(visit, "dark");
    await visit.page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: "light" }]);
    assert.notEqual(await colour(), dark);
  },
  "chrome",
);

test("a narrow screen does not scroll sideways", async ({ visit }) => {
  await visit.page.setViewport({ width: 360, height: 740 });
  await visit.open();
  const [content, screen] = await visit.page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  assert.ok(content <= screen, `${content} px of content on ${screen} px of screen`);
});

test("a new version waits until the person takes it", async ({ visit, site, copyOfDist }) => {
  await visit.open();
  await visit.kept();
  const old = await visit.page.title();

  site.folder = copyOfDist("newer");
  change(join(site.folder, "index.html"), "<title>", "<title>Newer ");
  change(join(site.folder, "sw.js"), 'VERSION = "', 'VERSION = "newer-');
  await visit.reload();
  await visit.visible("#update-notice");
  await visit.reload();
  await visit.visible("#update-notice");
  assert.equal(await visit.page.title(), old);

  await visit.page.click("#update-accept");
  // The page goes away while it is asked for its title.
  await until("the new version", async () => (await visit.page.title().catch(() => "")) === `Newer ${old}`);
  await visit.started();
});

test("a changed module is refused, and the page says so", async ({ visit, site, copyOfDist }) => {
  site.folder = copyOfDist("tampered");
  const module = join(site.folder, readdirSync(site.folder).find((it) => it.endsWith(".wasm")));
  const bytes = readFileSync(module);
  bytes[bytes.length - 1] ^= 1;
  writeFileSync(module, bytes);
  await visit.page.goto(site.url);
  await visit.visible("#failed");
  assert.equal(await visit.page.$("#verdict"), null);
});

test(
  "without scripts the page says what it is and what it needs",
  async ({ visit, site }) => {
    await visit.page.setJavaScriptEnabled(false);
    await visit.page.goto(site.url);
    const text = await visit.page.$eval("body", (it) => it.innerText);
    assert.match(text, /Headroom/);
    assert.match(text, /needs JavaScript/);
  },
  "chrome",
);

function change(file, from, to) {
  const text = readFileSync(file, "utf8");
  assert.ok(text.includes(from), `${file}: expected ${from}`);
  writeFileSync(file, text.replace(from, to));
}
