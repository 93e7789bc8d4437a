// What the page answers: the command line's numbers, whatever is linked, typed or broken.
import assert from "node:assert/strict";
import { becomes, until } from "./browser.mjs";
import { allocated, dice, headroom, test } from "./test.mjs";

test("the page answers, and says the command line's number for the same scenario", async ({ visit }) => {
  await visit.open();
  assert.match(await visit.at("#verdict", (it) => it.innerText), /\d/);
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
  await becomes("the same screen", () => visit.screen(), screen);

  // Nothing but the link is shared: its storage is cleared.
  await visit.page.evaluate(() => localStorage.clear());
  visit.page = await visit.newPage();
  await visit.open(link);
  await becomes("the same screen", () => visit.screen(), screen);
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
  "six hundred damaged links are each answered, and quickly",
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
    const links = Array.from({ length: 600 }, damaged);
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
    for (let at = 0; at < links.length; at += 200) {
      slowest = Math.max(slowest, await visit.page.evaluate(open, links.slice(at, at + 200)));
    }
    console.log(`     the slowest of 600 damaged links took ${slowest.toFixed(0)} ms`);
    assert.equal(await visit.at("#crashed", (it) => it.hidden), true);
    assert.deepEqual(visit.heard, []);
    await visit.page.evaluate(() => (location.hash = "v=1&mb=3"));
    await until("a sound link to open", async () => (await visit.at('[name="data.micro_batch"]', (it) => it.value)) === "3");
  },
  "chrome",
  400_000,
);

test("a trap leaves no verdict on the screen", async ({ visit }) => {
  await visit.open(`${visit.site.url}#v=1`);
  const seen = (id) => visit.at(id, (it) => getComputedStyle(it).visibility === "visible" && !it.hidden);
  assert.deepEqual([await seen("#verdict"), await seen("#crashed")], [true, false]);
  // What a browser says when the module ends, whatever ended it.
  await visit.page.evaluate(() => {
    const error = new WebAssembly.RuntimeError("unreachable");
    dispatchEvent(new ErrorEvent("error", { error }));
  });
  assert.deepEqual([await seen("#verdict"), await seen("#crashed")], [false, true]);
});

test(
  "four thousand edits do not fill the module's memory",
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
    for (let part = 0; part < 4; part += 1) after = await edit(1000);
    console.log(`     the module's memory went from ${before} to ${after} bytes`);
    assert.ok(after - before < 4 * 2 ** 20, `${before} → ${after}`);
  },
  "chrome",
  400_000,
);
