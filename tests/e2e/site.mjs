// What the page has to do with its server: nothing once it has loaded, and no change behind its back.
import assert from "node:assert/strict";
import { connect } from "node:net";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { becomes, until } from "./browser.mjs";
import { allocated, headroom, test } from "./test.mjs";

/** The status of a request whose path is sent as it is. */
const status = (address, path) =>
  new Promise((done, failed) => {
    const { hostname, port } = new URL(address);
    const socket = connect(Number(port), hostname, () => socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`));
    let text = "";
    socket.on("data", (part) => (text += part)).on("error", failed);
    socket.on("end", () => done(Number(text.split(" ")[1])));
  });

test("no address ends the server", async ({ visit }) => {
  const { pathname } = new URL(visit.site.url);
  for (const path of ["//", "/%00", `${pathname}%00`, `${pathname}index.html/`, `${pathname}%`, `${pathname}../../x`]) {
    assert.equal(await status(visit.site.url, path), 404, path);
  }
  assert.equal(await status(visit.site.url, pathname), 200);
});

test("with the server gone, a reload still works and exports", async ({ visit, site }) => {
  await visit.open();
  await visit.set("data.micro_batch", "2");
  await visit.address("mb=2");
  await visit.kept();
  const screen = await visit.screen();
  await site.close();

  await visit.reload();
  await becomes("the same screen", () => visit.screen(), screen);
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

test("a recorded graph comes when its model is chosen, stays offline, and says where it does not come", async ({ visit, site }) => {
  const graphs = () => site.requests.filter((it) => it.includes("/graphs/"));
  await visit.open();
  await visit.kept();
  assert.deepEqual(graphs(), []);
  await visit.set("model.id", "densenet-121");
  await visit.address("model=densenet-121");
  assert.equal(graphs().length, 1);
  const [yaml, bytes] = [headroom(["open", await visit.page.evaluate(() => location.hash)]), await visit.bytes()];
  assert.equal(allocated(yaml), bytes);
  await site.close();

  await visit.reload();
  assert.equal(await visit.bytes(), bytes);
  // Another cannot come: the page says so, and what was typed stays.
  const field = '[name="model.id"]';
  await visit.type(field, "inception-v3");
  await visit.page.keyboard.press("Tab");
  await visit.page.waitForFunction(() => /Inception v3|inception-v3.*could not be loaded/.test(document.querySelector(".problems")?.innerText ?? ""));
  assert.match(await visit.at(field, (it) => it.value), /Inception v3|inception-v3/);
});

test("no request leaves the page after it has loaded", async ({ visit, site }) => {
  await visit.open();
  await visit.kept();
  await visit.visible("#offline-notice");
  const [served, asked] = [site.requests.length, visit.asked.length];

  await visit.set("data.micro_batch", "5");
  await visit.set("training.precision", "bf16");
  await visit.download('[data-testid="export-yaml"]');
  await visit.press('[data-testid="share"] summary');
  await visit.press('[data-testid="copy-link"]');
  await visit.address("bf16");

  // A browser looks for a newer offline copy in its own time (Firefox a second after a load): no page asks for that.
  const browsers = (it) => it.endsWith("/sw.js");
  assert.deepEqual(site.requests.slice(served).filter((it) => !browsers(it)), []);
  // What the browser asks of its offline copy (its tab's icon, say) reaches no network; nothing may go elsewhere.
  const elsewhere = (it) => !/^(blob|data):/.test(it) && !it.startsWith(site.url);
  assert.deepEqual(visit.asked.slice(asked).filter(elsewhere), []);
});

test("the page keeps its own policy, and logs no error", async ({ visit }) => {
  await visit.open();
  await visit.kept();
  const policy = await visit.at("meta[http-equiv=Content-Security-Policy]", (it) => it.content);
  assert.ok(policy.startsWith("default-src 'none'") && !policy.includes("unsafe-inline"), policy);
  await visit.set("data.micro_batch", "4");
  await visit.set("training.optimizer", "sgd");
  await visit.download('[data-testid="export-yaml"]');
  await visit.press('[data-testid="share"] summary');
  await visit.press('[data-testid="copy-link"]');
  assert.deepEqual(await visit.violations(), []);
  assert.deepEqual(visit.heard, []);
});

test("a new version waits until the person takes it", async ({ visit, site, copyOfDist }) => {
  await visit.open();
  await visit.kept();
  const isNewer = () => visit.page.evaluate(() => "newer" in document.documentElement.dataset);

  site.folder = copyOfDist("newer");
  change(join(site.folder, "index.html"), '<html lang="en"', '<html lang="en" data-newer');
  change(join(site.folder, "sw.js"), 'VERSION = "', 'VERSION = "newer-');
  await visit.reload();
  await visit.visible("#update-notice");
  await visit.reload();
  await visit.visible("#update-notice");
  assert.equal(await isNewer(), false);

  await visit.press("#update-accept");
  // The page goes away while it is asked.
  await until("the new version", () => isNewer().catch(() => false));
  await visit.started();
});

for (const [part, name] of [["first", /^headroom-[0-9a-f]+\.wasm$/], ["second", /^headroom-later-.*\.wasm$/]]) {
  test(`a changed ${part} part of the module is refused, and the page says so`, async ({ visit, site, copyOfDist }) => {
    site.folder = copyOfDist(`tampered-${part}`);
    const module = join(site.folder, readdirSync(site.folder).find((it) => name.test(it)));
    const bytes = readFileSync(module);
    bytes[bytes.length - 1] ^= 1;
    writeFileSync(module, bytes);
    await visit.page.goto(site.url);
    await visit.visible("#failed");
    assert.equal((await visit.page.$("#verdict")) === null, part === "first");
  });
}

test("the first answer needs only the first part of the module", async ({ visit, site }) => {
  await visit.open();
  await visit.kept();
  // What is called too early is fetched at once, by another kind of request.
  const asked = await visit.page.evaluate(() => performance.getEntriesByType("resource").filter((it) => /later/.test(it.name)).map((it) => it.initiatorType));
  assert.deepEqual(asked, ["fetch"]);
  assert.ok(site.requests.some((it) => /later/.test(it)));
});

test("a control that is used before the second part has come brings it", async ({ visit, site, copyOfDist }) => {
  // The script that starts the page never asks for the second part.
  site.folder = copyOfDist("early");
  change(join(site.folder, "boot.js"), "secondPart(later && (await finish(page, second)));", "");
  await visit.page.goto(site.url);
  await visit.page.waitForSelector('[data-testid="allocated-bytes"][data-bytes]');
  const before = await visit.bytes();
  await visit.select("#preset", "dreams");
  await until("another answer", async () => (await visit.bytes()) !== before);
  const asked = await visit.page.evaluate(() => performance.getEntriesByType("resource").filter((it) => /later/.test(it.name)).map((it) => it.initiatorType));
  assert.deepEqual(asked, ["xmlhttprequest"]);
  assert.deepEqual(visit.heard, []);
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
