// The way through the page: where a first visit begins, the four places, fields that take what people write.
import assert from "node:assert/strict";
import { until } from "./browser.mjs";
import { Person } from "./person.mjs";
import { accessible, test, unfold } from "./test.mjs";

const text = (visit, selector) => visit.at(selector, (it) => it.innerText);
const value = (visit, path) => visit.at(`[name="${path}"]`, (it) => it.value);

test("the field takes a name, a file or an error", async ({ visit }) => {
  const { page } = visit;
  await visit.open();
  assert.match(await text(visit, ".brand"), /Does this training run fit/);
  const begin = async (given, ...keys) => {
    await visit.type("#any", given);
    for (const key of keys) await page.keyboard.press(key);
  };
  await begin("meta-llama/Llama-3.1-8B-Instruct", "Enter");
  await until("the model", async () => (await value(visit, "model.id")) === "Llama 3.1 8B");
  await begin("4090", "Enter");
  await until("the card", async () => /4090/.test(await value(visit, "hardware.gpu")));

  // What is no name offers the nearest.
  await begin("qwenn 2.5 7", "Enter");
  await page.waitForFunction(() => /nearest/.test(document.querySelector(".nearest").innerText));
  await visit.press(".nearest button", "Qwen2.5 7B");
  await until("the nearest model", async () => (await value(visit, "model.id")) === "Qwen2.5 7B");

  // What has several lines is pasted: a program's settings, a part of a run, and a command.
  const paste = async (given) => {
    await visit.at(
      "#any",
      (it, given) => {
        it.value = given;
        it.dispatchEvent(new Event("input", { bubbles: true }));
      },
      given,
    );
  };
  const shows = (model, micro_batch) => async () => (await value(visit, "model.id")) === model && (await value(visit, "data.micro_batch")) === micro_batch;
  await paste("base_model: meta-llama/Llama-3.2-1B\nmicro_batch_size: 3\nsequence_len: 512\nadapter: lora\n");
  await until("Axolotl's settings", shows("Llama 3.2 1B", "3"));
  await paste('{"train_micro_batch_size_per_gpu": 2,\n"zero_optimization": {"stage": 2}}');
  await until("DeepSpeed's settings for the same model", shows("Llama 3.2 1B", "2"));
  await until("what is not named", async () => /No model is named/.test(await text(visit, "#app")));
  await paste("accelerate launch train.py \\\n  --model_name_or_path Qwen/Qwen2.5-0.5B --per_device_train_batch_size 5\n");
  await until("a command's settings", shows("Qwen2.5 0.5B", "5"));

  // A pasted error goes to the doctor.
  await paste("Traceback\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.64 GiB of which 1.00 GiB is free.");
  await page.waitForFunction(() => /out of memory/.test(document.querySelector("#doctor")?.value ?? ""));
  assert.deepEqual(visit.heard, []);
});

test("an example is one choice from its answer", async ({ visit }) => {
  const { page } = visit;
  await visit.open();
  await visit.select("#preset", "llama-8b-lora-24gb");
  await until("the answer", async () => /Llama 3\.1 8B, LoRA/.test(await text(visit, ".about")));
  assert.equal(await page.$(".changed:not([hidden])"), null);
});

test("each place is one click or one key away, and the answer stays in sight", async ({ visit }) => {
  const { page } = visit;
  await visit.open();
  const seen = (place) =>
    visit.at(`#place-${place}`, (it) => {
      const bar = document.querySelector(".verdict-bar").getBoundingClientRect();
      const top = it.getBoundingClientRect().top;
      return bar.top >= -1 && bar.bottom <= innerHeight + 1 && top > -2 && top < innerHeight;
    });
  const places = ["fits", "change", "run", "diagnose"];
  for (const [width, height] of [
    [1440, 900],
    [360, 740],
  ]) {
    await page.setViewport({ width, height });
    for (const [at, place] of places.entries()) {
      await page.evaluate(() => document.activeElement.blur());
      await page.keyboard.press(String(at + 1));
      await until(`the place ${place} by key`, () => seen(place));
      assert.equal(await page.evaluate(() => document.activeElement.id), `place-${place}`);
    }
    for (const place of places) {
      await visit.press(`[data-place="place-${place}"]`);
      await until(`the place ${place} by click`, () => seen(place));
      const marked = () => page.evaluate(() => document.querySelector(".places [aria-current=true]")?.dataset.place);
      await until(`the link to ${place} to be the marked one`, async () => (await marked()) === `place-${place}`);
    }
  }
});

test("the keyboard is never under what stays in sight", async ({ visit }) => {
  const { page } = visit;
  await page.setViewport({ width: 1280, height: 700 });
  await visit.open(`${visit.site.url}#v=1&dims=layers=2,hidden=128,heads=2&seq=64`);
  // The skip link is the first stop.
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.className), "skip");
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate(() => document.activeElement.id), "answers");
  const hidden = [];
  for (let stops = 0; stops < 60; stops += 1) {
    await page.keyboard.press("Tab");
    const under = await page.evaluate(() => {
      const it = document.activeElement;
      const bar = document.querySelector(".verdict-bar");
      if (bar.contains(it) || it === document.body) return "";
      const [a, b] = [it.getBoundingClientRect(), bar.getBoundingClientRect()];
      return a.top < b.bottom - 1 && a.bottom > b.top + 1 && a.left < b.right && a.right > b.left ? it.outerHTML.slice(0, 100) : "";
    });
    if (under) hidden.push(under);
  }
  assert.deepEqual(hidden, []);
});

test("numbers are taken as people write them, and a change is taken back by one click", async ({ visit }) => {
  const { page } = visit;
  await visit.open();
  const before = await visit.bytes();
  const check = async (path, written, meant) => {
    await visit.type(`[name="${path}"]`, written);
    await page.keyboard.press("Tab");
    await until(`${path} to be ${meant}`, async () => (await value(visit, path)) === meant);
  };
  await check("data.sequence", "2k", "2048");
  await check("data.sequence", "1,536", "1536");
  const moved = () => visit.at('[data-path="data.micro_batch"]', (it) => it.getBoundingClientRect().top);
  const place = await moved();
  await visit.type('[name="data.sequence"]', "1e");
  assert.equal(await moved(), place);
  await check("data.sequence", "1536", "1536");
  const changed = '[data-path="data.sequence"] .changed';
  assert.match(await visit.at(changed, (it) => it.title), /Back to 1024/);
  await visit.press(changed);
  await until("the preset's length", async () => (await visit.bytes()) === before);
  assert.equal(await page.evaluate(() => document.activeElement.name), "data.sequence");
});

test("a model is found by what people call it, and never by a lone part of a name", async ({ visit }) => {
  const { page } = visit;
  await visit.open();
  const type = (given) => visit.type('[name="model.id"]', given);
  const options = () => visit.all('[id="model.id.list"] [role=option]', (all) => all.map((it) => it.firstChild.data));
  await type("lamma-3.1-8b");
  await until("the nearest", async () => (await options()).includes("Llama 3.1 8B"));
  await until("no match", async () => /No match/.test(await text(visit, ".combo .found > p:not([hidden])")));
  await page.keyboard.press("Escape");
  await type("resnet50");
  await page.keyboard.press("Enter");
  await until("ResNet-50", async () => (await value(visit, "model.id")) === "ResNet-50");
});

test("charts say the values where one points, and each is a picture one click away", async ({ visit }) => {
  const { page } = visit;
  await visit.open();
  await page.waitForSelector('[data-testid="sweep-chart"] .plot .line-main');
  await visit.at('[data-testid="sweep-chart"]', (it) => it.scrollIntoView({ block: "center" }));
  await visit.still('[data-testid="sweep-chart"] .plot');
  const [right, middle] = await visit.at('[data-testid="sweep-chart"] .plot', (it) => {
    const box = it.getBoundingClientRect();
    return [box.right, box.top + box.height / 2];
  });
  await page.mouse.move(right - 30, middle);
  await page.waitForFunction(() => /Micro-batch 16: /.test(document.querySelector('[data-testid="sweep-chart"] .readout').innerText));
  await page.waitForSelector('[data-testid="timeline"] .drawing .part-activations');
  assert.match(await text(visit, '[data-testid="timeline"] .readout'), /allocated: activations/);
  for (const chart of ["timeline", "sweep", "breakdown"]) {
    const { name, text } = await visit.download(`[data-testid="picture-${chart}"]`);
    assert.ok(name === `${chart}.png` && text.includes("PNG"), name);
  }
  await unfold(visit, "modules");
  await page.waitForSelector("[data-testid=flame] .tile");
  await visit.press('[data-testid="modules"] .tensors th button');
  await page.waitForFunction(() => document.querySelectorAll(".crumbs button").length === 2);
  await accessible(visit, "modules");
  assert.deepEqual(await visit.violations(), []);
  assert.deepEqual(visit.heard, []);
});

test(
  "an edit moves nothing",
  async ({ visit }) => {
    const { page } = visit;
    await page.evaluateOnNewDocument(() => {
      window.moved = [];
      // Within the answer words change, and others take their line.
      const jumps = ({ node, previousRect, currentRect }) => Math.abs(previousRect.top - currentRect.top) > 1 && !node?.parentElement?.closest(".sentence");
      const told = (shift) => shift.sources.filter(jumps).map(({ node, previousRect, currentRect }) => `${node?.id || node?.className || node?.nodeName} ${previousRect.top} to ${currentRect.top}`);
      new PerformanceObserver((list) => window.moved.push(...list.getEntries().flatMap(told))).observe({ type: "layout-shift" });
    });
    for (const [width, height] of [
      [1440, 900],
      [1024, 768],
      [360, 740],
    ]) {
      await page.setViewport({ width, height });
      await page.goto("about:blank");
      await visit.open(`${visit.site.url}#v=1`);
      for (const place of [".verdict", '[data-testid="sweep-chart"]']) {
        await page.waitForSelector('[data-testid="sweep-chart"] .plot .line-main');
        await visit.at(place, (it) => it.scrollIntoView({ block: "center" }));
        await page.evaluate(() => (window.moved = []));
        for (const batch of ["2", "16", "8"]) {
          // Not by a key: a browser forgives what moves just after one.
          await visit.at('[name="data.micro_batch"]', (it, batch) => ((it.value = batch), it.dispatchEvent(new Event("input", { bubbles: true }))), batch);
          await page.waitForFunction((batch) => document.querySelector('[data-testid="sweep-chart"] .readout').innerText.startsWith(`Micro-batch ${batch}:`), {}, batch);
        }
        assert.deepEqual(await page.evaluate(() => window.moved), [], `${place} at ${width}`);
      }
    }
  },
  "chrome",
);

test("in one column the form is folded below the field, and a key opens it", async ({ visit }) => {
  const { page } = visit;
  await page.setViewport({ width: 360, height: 740 });
  await visit.open();
  const fold = '[data-testid="form-fold"]';
  assert.equal(await visit.at(fold, (it) => it.open), false);
  const top = () => visit.at(".plan-strip", (it) => it.getBoundingClientRect().top + scrollY);
  assert.ok((await top()) < 740, `plans begin at ${await top()}`);
  await page.evaluate(() => document.activeElement.blur());
  await page.keyboard.press("/");
  assert.equal(await visit.at(fold, (it) => it.open), true);
  assert.equal(await page.evaluate(() => document.activeElement.id), "find-setting");
});

test("plans for a program begin with the run as it can start it, and say so", async ({ visit }) => {
  const person = await Person.open(visit, "#v=1&gpu=h100-sxm5-80gb&gpus=8&model=llama-3.1-8b&mb=8");
  await person.choose("Written for", "torchtitan");
  const said = () => visit.at(".plan-strip", (it) => it.innerText);
  await until("what it changes", async () => /For torchtitan: .*Gradient clipping: on/.test(await said()));
  await until("a plan", async () => /Fastest/.test(await said()));
});
