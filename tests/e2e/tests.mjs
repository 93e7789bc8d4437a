// What only a browser shows. Everything else is tested without one.
import assert from "node:assert/strict";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { until } from "./browser.mjs";
import { accessible, allocated, dice, headroom, press, test, unfold } from "./test.mjs";

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
  const policy = await visit.page.$eval("meta[http-equiv=Content-Security-Policy]", (it) => it.content);
  assert.ok(policy.startsWith("default-src 'none'") && !policy.includes("unsafe-inline"), policy);
  await visit.set("data.micro_batch", "4");
  await visit.set("training.optimizer", "sgd");
  await visit.download('[data-testid="export-yaml"]');
  await visit.page.click('[data-testid="copy-link"]');
  assert.deepEqual(await visit.violations(), []);
  assert.deepEqual(visit.heard, []);
});

test("advice is worked out in the background, can be taken and taken back", async ({ visit }) => {
  await visit.open();
  await visit.set("data.micro_batch", "64");
  const before = await visit.bytes();
  await press(visit, '[data-testid="ladder"] [data-link]');
  await until("the advice to be taken", async () => (await visit.bytes()) < before);
  assert.match(await visit.page.$eval("#verdict", (it) => it.innerText), /fits/);
  // What was before stays to be seen behind what is.
  await visit.page.waitForSelector('[data-testid="timeline"] .line-ghost');
  await visit.page.$$eval(".tools button", (all) => all.find((it) => it.textContent === "Undo").click());
  await until("the run before", async () => (await visit.bytes()) === before);
});

test("every panel of advice fills, and a search can be stopped", async ({ visit }) => {
  await visit.open(`${visit.site.url}#v=1&dims=layers=2,hidden=128,heads=2&seq=64`);
  for (const panel of ["moves", "tiers", "gpus", "solve", "search", "steps"]) await unfold(visit, panel);
  for (const panel of ["moves", "tiers", "gpus", "solve"]) {
    await visit.page.waitForSelector(`[data-testid="${panel}"] [aria-busy=false] tbody tr`);
  }
  await visit.page.waitForSelector('[data-testid="steps"] tbody tr');
  await visit.page.waitForSelector('[data-testid="steps"] .plot .line-soft');
  await visit.page.waitForFunction(() => /combinations/.test(document.querySelector('[data-testid="search"]').innerText));
  await press(visit, '[data-testid="search"] .actions button');
  await visit.page.waitForFunction(() => /Search again/.test(document.querySelector('[data-testid="search"]').innerText));
  assert.deepEqual(visit.heard, []);
});

test("a network is declared by keyboard, checked as it is typed, and taken back", async ({ visit }) => {
  const { page } = visit;
  const { keyboard } = page;
  await visit.open();
  const focused = () => page.evaluate(() => document.activeElement.id || document.activeElement.dataset.do);
  const into = async (selector, ...keys) => {
    await page.waitForSelector(selector);
    await page.focus(selector);
    for (const key of keys) await keyboard.press(key);
  };
  const agrees = async (said) => {
    // A long network travels squeezed, so the command line reads it.
    const link = await until(`a link whose network says ${said}`, async () => {
      const link = await page.evaluate(() => location.href);
      return said.test(headroom(["open", link])) && link;
    });
    const bytes = allocated(headroom(["open", link]));
    await until(`${link} to need ${bytes}`, async () => (await visit.bytes()) === bytes);
  };
  await into("#network > summary", "Enter");
  await into('[data-example="2"]', "Enter");
  await page.waitForSelector("#network-rows [data-field=kernel]");
  await agrees(/width: 64/);

  // A wrong value stays in its field, which says so; what was right before stays answered, and marked.
  await into("#net-0-value0", "End", "Backspace", "Backspace");
  await keyboard.type("6x");
  await page.waitForSelector("#net-0-value0[aria-invalid=true]");
  assert.match(await page.$eval("#net-0-", (it) => it.innerText), /expected a new name and a whole number/);
  assert.equal(await focused(), "net-0-value0");
  assert.equal(await page.$eval("#net-0-value0", (it) => it.value), "6x");
  await keyboard.press("Backspace");
  await keyboard.type("4");
  await page.waitForSelector("#net-0-value0[aria-invalid=false]");

  // What reads well and does not fit is said where it stands.
  await into("#net-2-repeat");
  await keyboard.type("2");
  await page.waitForFunction(() => /cannot go in again/.test(document.querySelector("#net-2-").innerText));
  await keyboard.press("Backspace");

  // Rows come, move and go, and the keyboard stays with them.
  const kinds = () => page.$$eval("#network-rows legend", (all) => all.map((it) => it.firstChild.data.trim()).join(" "));
  const before = await kinds();
  await into('[data-do=add][data-row="2"][data-kind=dropout]', "Enter");
  await until("the field of the new row to be focused", async () => (await focused()) === "net-6-p");
  await into('[data-do=up][data-row="6"]', "Enter");
  await until("the button to have moved with its row", () => page.evaluate(() => document.activeElement.matches('[data-do=up][data-row="5"]')));
  assert.equal(await kinds(), before.replace("activation", "dropout activation"));
  await agrees(/layer: dropout/);
  await into('[data-do=remove][data-row="5"]', "Enter");
  await until("the row to go", async () => (await kinds()) === before);
  await page.$$eval(".tools button", (all) => all.find((it) => it.textContent === "Undo").click());
  await until("the row to be back", async () => (await kinds()) === before.replace("activation", "dropout activation"));

  // The text beside them is the same network.
  await page.$eval("#network-text", (it) => {
    it.value = "input,kind=values,shape=batch:64:256;\npart,name=core,passes=8;\nmlp,width=1024";
    it.dispatchEvent(new Event("input", { bubbles: true }));
  });
  await until("the rows of the text", async () => (await kinds()) === "input part mlp");
  await agrees(/passes: 8/);
  await accessible(visit, "a network");
  assert.deepEqual(visit.heard, []);
});

test("a cell of the fit map is the run it shows", async ({ visit }) => {
  await visit.open();
  await unfold(visit, "map");
  await press(visit, '[data-testid="map"] [data-cell="0 0"]');
  await visit.address("seq=128");
  assert.equal(await visit.page.$eval('[name="data.micro_batch"]', (it) => it.value), "1");
});

test("plans are kept by name, and come back from their file", async ({ visit }) => {
  await visit.open();
  await visit.set("data.micro_batch", "3");
  await unfold(visit, "plans");
  await visit.page.type('[data-testid="plans"] input', "three <b>");
  const buttons = '[data-testid="plans"] .actions button';
  await press(visit, buttons);
  await visit.page.waitForSelector('[data-testid="plans"] [data-open]');
  const { name } = await visit.download(`${buttons}:last-child`);
  assert.equal(name, "headroom-plans.json");

  await press(visit, '[data-testid="plans"] [data-forget]');
  await until("no plans", async () => (await visit.page.$('[data-testid="plans"] [data-open]')) === null);
  await visit.set("data.micro_batch", "5");
  await (await visit.page.$('[data-testid="open-file"]')).uploadFile(join(visit.downloads, name));
  await visit.page.waitForSelector('[data-testid="plans"] [data-open]');
  assert.equal(await visit.page.$eval('[data-testid="plans"] [data-open]', (it) => it.innerText), "three <b>");
  await press(visit, '[data-testid="plans"] [data-open]');
  await visit.address("mb=3");
});

test("a file of ours opens as the run it was written for", async ({ visit }) => {
  await visit.open();
  await visit.set("data.micro_batch", "3");
  const bytes = await visit.bytes();
  const { name } = await visit.download('[data-testid="export-yaml"]');
  await visit.set("data.micro_batch", "5");
  await (await visit.page.$('[data-testid="open-file"]')).uploadFile(join(visit.downloads, name));
  await until("the run of the file", async () => (await visit.bytes()) === bytes);
});

test("charts are saved as drawing, picture and numbers", async ({ visit }) => {
  await visit.open();
  await visit.page.$eval('[data-testid="timeline"] ~ details:last-of-type', (it) => (it.open = true));
  const save = (kind) => visit.download(`[data-testid="save-timeline"] [data-as="${kind}"]`);
  assert.match((await save("svg")).text, /^<svg /);
  assert.match((await save("csv")).text, /^instant,phase,allocated_bytes\n1,/);
  const { name, text } = await save("png");
  assert.ok(name.endsWith(".png") && text.includes("PNG"), name);
  assert.deepEqual(await visit.violations(), []);
});

test("a probe's log is drawn beside the prediction, and its difference can be laid on the answer", async ({ visit }) => {
  await visit.open();
  const line = (step) => JSON.stringify({ step, peak_allocated: 2 ** 34, allocated: 2 ** 31, reserved: 2 ** 34 });
  await visit.page.type("#doctor", `${[0, 1, 2].map(line).join("\n")}\n`);
  await visit.page.waitForSelector('[data-testid="measured"]:not([hidden]) svg .line-ghost');
  assert.match(await visit.page.$eval('[data-testid="measured"] table', (it) => it.innerText), /16\.0 GiB/);
  await press(visit, '[data-testid="measured"] .actions button');
  await press(visit, '[data-testid="calibrated"] button');
  await until("the difference to go", async () => (await visit.page.$('[data-testid="calibrated"]')) === null);
  const { name } = await visit.download('[data-testid="probe"]');
  assert.equal(name, "headroom_probe.py");
});

test("a system's guide stands beside what is computed", async ({ visit }) => {
  await visit.open();
  await visit.page.select("#preset", "dreams");
  await visit.page.waitForSelector('[data-testid="guide"]:not([hidden])');
  await unfold(visit, "guide");
  await visit.page.waitForFunction(
    () => {
      const rows = [...document.querySelectorAll('[data-testid="guide"] tbody tr')];
      return rows.length > 5 && rows.every((it) => it.children[1].innerText !== "…");
    },
  );
});

test("numbers on the screen are the command line's, for fifty scenarios", async ({ visit }) => {
  await visit.open();
  const roll = dice(7);
  const one = (...all) => all[roll(all.length)];
  for (let at = 0; at < 50; at += 1) {
    const model = one("gpt2", "llama-3.2-1b", "bert-base-uncased", "resnet-50", "vit-b16", "t5-base", "qwen2.5-0.5b");
    const parts = [
      "v=1",
      `model=${model}`,
      `mb=${1 + roll(16)}`,
      `seq=${64 * (1 + roll(8))}`,
      `precision=${one("fp32", "bf16", "amp-bf16")}`,
      `optim=${one("sgd", "adamw", "adamw-fused", "lion", "adafactor")}`,
      `accum=${1 + roll(3)}`,
      `gpu=${one("rtx-4090", "h100-sxm5-80gb", "a100-sxm4-80gb")}`,
    ];
    const fragment = parts.join("&");
    await visit.page.evaluate((it) => (location.hash = it), fragment);
    const expected = allocated(headroom(["open", `#${fragment}`]));
    await until(`${fragment} to need ${expected}`, async () => (await visit.bytes()) === expected);
  }
});

test(
  "two thousand damaged links are each answered, and quickly",
  async ({ visit }) => {
    await visit.open(`${visit.site.url}#v=1&model=gpt2&dims=layers=1,hidden=64,heads=2,vocab=100&seq=16&mb=2`);
    const roll = dice(11);
    const sound = "v=1&data=1&gpu=rtx-4090&model=gpt2&dims=layers=1,hidden=64,heads=2,vocab=100&seq=16&mb=2&lora=on&lora_rank=8&optim=sgd";
    const damaged = () => {
      let link = sound;
      for (let times = 1 + roll(6); times > 0; times -= 1) {
        const at = roll(link.length);
        const what = ["%", "&", "=", "9".repeat(1 + roll(30)), "\u00e9", "-", "", "<script>", "b.", "\u0000"][roll(10)];
        link = link.slice(0, at) + what + link.slice(at + roll(4));
      }
      return link;
    };
    const links = Array.from({ length: 2000 }, damaged);
    const open = async (all) => {
      let most = 0;
      for (const link of all) {
        // The answer is there a turn of the event loop later; timers in a row would wait four milliseconds more.
        const heard = new Promise((done) => {
          const turn = () => {
            const { port1, port2 } = new MessageChannel();
            port1.onmessage = () => done(port1.close());
            port2.postMessage(0);
          };
          addEventListener("hashchange", turn, { once: true });
        });
        const before = location.hash;
        const started = performance.now();
        location.hash = link;
        if (location.hash !== before) await heard;
        most = Math.max(most, performance.now() - started);
      }
      return most;
    };
    let slowest = 0;
    for (let at = 0; at < links.length; at += 250) {
      slowest = Math.max(slowest, await visit.page.evaluate(open, links.slice(at, at + 250)));
    }
    console.log(`     the slowest of 2000 damaged links took ${slowest.toFixed(0)} ms`);
    assert.equal(await visit.page.$eval("#crashed", (it) => it.hidden), true);
    assert.deepEqual(visit.heard, []);
    await visit.page.evaluate(() => (location.hash = "v=1&mb=3"));
    await until("a sound link to open", async () => (await visit.page.$eval('[name="data.micro_batch"]', (it) => it.value)) === "3");
  },
  "chrome",
  400_000,
);

test(
  "ten thousand edits do not fill the module's memory",
  async ({ visit }) => {
    await visit.open(`${visit.site.url}#v=1&dims=layers=1,hidden=64,heads=2,vocab=100&seq=16`);
    const edit = (times) =>
      visit.page.evaluate(async (count) => {
        const field = document.querySelector('[name="data.micro_batch"]');
        for (let at = 0; at < count; at += 1) {
          field.value = String(1 + ((at * 7) % 64));
          field.dispatchEvent(new Event("input", { bubbles: true }));
          // A turn of the event loop without the four milliseconds that timers in a row must wait.
          await new Promise((next) => {
            const { port1, port2 } = new MessageChannel();
            port1.onmessage = () => next(port1.close());
            port2.postMessage(0);
          });
        }
        const { default: init } = await import(new URL(document.querySelector("script[data-js]").dataset.js, document.baseURI));
        return (await init()).memory.buffer.byteLength;
      }, times);
    // Nothing is laid out: the module's memory is what is measured, and the browser's work would take most of the time.
    await visit.page.evaluate(() => (document.querySelector("#app").hidden = true));
    // What a rest works out in the background needs memory too, and keeps what it once had.
    await edit(100);
    await new Promise((rest) => setTimeout(rest, 2000));
    const before = await edit(100);
    let after = before;
    for (let part = 0; part < 10; part += 1) after = await edit(1000);
    console.log(`     the module's memory went from ${before} to ${after} bytes`);
    assert.ok(after - before < 8 * 2 ** 20, `${before} → ${after}`);
  },
  "chrome",
  400_000,
);

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
