// What people stumbled over, each done again as they did it.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { until } from "./browser.mjs";
import { Person } from "./person.mjs";
import { headroom, test, unfold } from "./test.mjs";

const verdict = (visit) => visit.at("#verdict", (it) => it.innerText);
const about = (visit) => visit.at(".about", (it) => it.innerText);
const value = (visit, path) => visit.at(`[name="${path}"]`, (it) => it.value);
const chips = (visit, kind = ".chip") => visit.page.$$eval(`.chips ${kind}`, (all) => all.map((it) => it.firstChild.data ?? it.innerText));
const say = async (visit, words) => {
  await visit.type("#any", words);
  await visit.page.keyboard.press("Enter");
};

for (const model of ["gpt2", "t5-base", "sdxl-unet", "llama-3.2-1b"]) {
  test(`a ticked LoRA is an answer, not an error: ${model}`, async ({ visit }) => {
    await visit.open(`${visit.site.url}#v=1&model=${model}&mb=1`);
    await visit.press('[name="training.lora"]');
    await visit.address("lora=on");
    await until("the answer", async () => /LoRA rank 16/.test(await about(visit)));
    assert.equal(await visit.page.$(".verdict.stale"), null);
    assert.equal(await visit.at(".verdict", (it) => it.querySelectorAll(".problems:not(.link-notes) li").length), 0);
    assert.deepEqual(visit.heard, []);
  });
}

test("a sentence is understood, told apart from what is assumed, and corrected where it stands", async ({ visit }) => {
  const { page } = visit;
  await visit.open();
  await say(visit, "RTX 4090, LoRA on Llama-3.1-8B at 4k");
  await until("the answer", async () => /Llama 3\.1 8B, LoRA/.test(await about(visit)));
  const [said, assumed] = [await chips(visit, ".chip:not(.assumed)"), await chips(visit, ".chip.assumed")];
  for (const words of ["Llama 3.1 8B", "GeForce RTX 4090", "4096 tokens"]) assert.ok(said.includes(words), `${words}: ${said}`);
  assert.ok(assumed.includes("batch 1"), assumed.join());
  assert.match(await verdict(visit), /of 23\.\d: /);
  // In place: the chip opens its field, and says what assumed the value.
  await visit.press('[data-chip="data.micro_batch"]');
  assert.match(await visit.at(".chip-field", (it) => it.innerText), /assumed/);
  await visit.type('[name="chip.data.micro_batch"]', "2");
  await page.keyboard.press("Tab");
  await visit.address("mb=2");
  await until("the chip to be given", async () => (await chips(visit, ".chip:not(.assumed)")).includes("batch 2"));
});

test("lists begin with what is new and used", async ({ visit }) => {
  const { page } = visit;
  await visit.open();
  const first = async (path, typed, expected) => {
    await visit.type(`[name="${path}"]`, typed);
    const name = () => visit.at(`[id="${path}.list"] [role=option]`, (it) => it.firstChild.data);
    await until(`${typed} to offer ${expected} first`, async () => expected.test(await name()));
    await page.keyboard.press("Escape");
  };
  await first("model.id", "qwen", /^Qwen3/);
  await first("model.id", "mistral", /^Mi(ni)?stral/);
  await first("hardware.gpu", "H100", /H100 SXM/);
  await first("hardware.gpu", "12 GB", /^(?!.*(128|Apple))/);
  await visit.type('[name="hardware.gpu"]', "H100");
  await page.keyboard.press("Enter");
  await until("the usual H100", async () => /H100 SXM5 80/.test(await value(visit, "hardware.gpu")));
  await visit.type('[name="hardware.gpu"]', "12 GB");
  await page.keyboard.press("Enter");
  await until("a GPU of 12 GB", async () => /12 ?GB|3060|4070|2060/.test(await value(visit, "hardware.gpu")));
});

test("a model brings its usual run", async ({ visit }) => {
  await visit.open();
  await visit.set("model.id", "Llama 3.1 8B");
  await until("adapters", async () => /LoRA rank 16, bf16 autocast over bf16 weights/.test(await about(visit)));
  assert.deepEqual([await value(visit, "data.micro_batch"), await value(visit, "data.sequence")], ["1", "2048"]);
  assert.match(await verdict(visit), /Needs (1|2)\d\.\d GiB/);
  await visit.set("model.id", "Whisper large-v3");
  assert.equal(await value(visit, "data.sequence"), "448");
});

test("the verdict's line names quantisation, strategy and task", async ({ visit }) => {
  await visit.open(`${visit.site.url}#v=1&model=qwen3-14b&lora=on&quant=nf4&mb=1&gpus=2&par=fsdp2&task=sft`);
  const said = await about(visit);
  for (const words of [/QLoRA/, /NF4/, /FSDP 2/, /fine-tuning/]) assert.match(said, words);
  assert.match(await visit.page.title(), /QLoRA/);
});

test("a repair shows its numbers before the click", async ({ visit }) => {
  await Person.open(visit, headroom(["link", "qwen-7b-grpo-vllm-8x80gb"]).trim());
  await visit.select("#export-target", "torchtune");
  const labels = await visit.all(".remedies button", (all) => all.map((it) => it.innerText));
  for (const label of labels) assert.match(label, /: [\d.]+ [KMGT]iB, (fits|probably|does)/);
});

test("a repair that lowers the effective batch says so before the click", async ({ visit }) => {
  await Person.open(visit, headroom(["link", "qwen-7b-grpo-vllm-8x80gb"]).trim());
  const before = Number(/GPUs = (\d+)/.exec(await visit.at(".verdict", (it) => it.innerText))[1]);
  await visit.select("#export-target", "verl");
  await visit.page.waitForFunction(() => document.querySelector("#files pre, .remedies button"));
  const labels = await visit.page.$$eval(".remedies button", (all) => all.map((it) => it.innerText));
  for (const label of labels) {
    const batch = /effective batch (\d+) → (\d+)/.exec(label);
    if (/parallelism to none/i.test(label)) assert.ok(batch && Number(batch[1]) === before, label);
  }
});

test("a pasted launch command keeps its GPUs", async ({ visit }) => {
  await visit.open();
  const paste = (command) =>
    visit.at(
      "#any",
      (it, command) => {
        it.value = command;
        it.dispatchEvent(new Event("input", { bubbles: true }));
      },
      command,
    );
  for (const [launcher, gpus] of [
    ["torchrun --nproc_per_node 8 \\\n  train.py --model_name_or_path Qwen/Qwen2.5-0.5B \\\n  --per_device_train_batch_size 3\n", "8"],
    ["accelerate launch --num_processes 4 \\\n  train.py --model_name_or_path Qwen/Qwen2.5-0.5B \\\n  --per_device_train_batch_size 5\n", "4"],
    ["srun --nodes 2 --ntasks-per-node 8 --gpus-per-node 8 \\\n  python train.py --model_name_or_path Qwen/Qwen2.5-0.5B \\\n  --per_device_train_batch_size 7\n", "16"],
  ]) {
    await paste(launcher);
    await until(`${gpus} GPUs of ${launcher}`, async () => (await value(visit, "hardware.gpus")) === gpus);
  }
});

test("vLLM's memory is called vLLM's, in every panel", async ({ visit }) => {
  await Person.open(visit, headroom(["link", "qwen-7b-grpo-vllm-8x80gb"]).trim());
  await visit.page.waitForSelector('[data-testid="timeline"] .cursor');
  for (const panel of ['[data-testid="breakdown"]', '[data-testid="timeline"]']) {
    const said = await visit.at(panel, (it) => it.innerText);
    assert.match(said, /vLLM/, panel);
    assert.doesNotMatch(said, /[Bb]uffers\s+2\d\.\d GiB/, panel);
  }
  // Sampling is a phase of the step, with a bar of its own.
  assert.match(await visit.at('[data-testid="phases"]:not([hidden])', (it) => it.innerText), /Generation\s+[\d.]+ GiB/);
});

test("one run has one verdict", async ({ visit }) => {
  await visit.open(`${visit.site.url}#v=1&mb=64`);
  const [needs, short] = /Needs ([\d.]+ GiB).*does not fit, ([\d.]+) short/.exec(await verdict(visit)).slice(1);
  assert.match(await visit.page.title(), /does not fit/i);
  const bar = await visit.at(".pictures", (it) => it.textContent);
  assert.ok(bar.includes(`${short} GiB over`), `${short}: ${bar.slice(0, 200)}`);
  await visit.page.waitForSelector('[data-testid="plans-strip"] [aria-busy=false]');
  const now = () => visit.at('[data-testid="plans-strip"] .plan-now', (it) => it.textContent);
  await until("the same in the plans", async () => (await now()).includes(needs));
  assert.ok((await visit.at('[data-testid="breakdown"] .total', (it) => it.innerText)).includes(needs));
});

test("what is locked does not change in any plan", async ({ visit }) => {
  await visit.open(`${visit.site.url}#v=1&model=llama-3.1-8b&mb=1&seq=4096&lora=on&precision=fp32`);
  const rows = await visit.all('[data-testid="planner"] > .advice[aria-busy=false] tbody tr', (all) => all.map((it) => it.innerText));
  assert.ok(rows.length > 0);
  for (const row of rows) if (!/if |unlock|precision/i.test(row)) assert.doesNotMatch(row, /adapters in bf16|weights in bf16|pure bf16/i);
});

test("pictures and videos have a size, not a length", async ({ visit }) => {
  await visit.open();
  for (const [model, size] of [
    ["sdxl-unet", /1 × 1024 × 1024 pixels/],
    ["wan2.1-t2v-1.3b", /1 × 81 frames of 480 × 832 pixels/],
  ]) {
    await visit.page.evaluate((it) => (location.hash = it), `v=1&model=${model}&mb=1`);
    await until(`the size of ${model}`, async () => size.test(await about(visit)));
    const said = await about(visit);
    assert.doesNotMatch(said, /tokens/);
    assert.equal(await visit.at('[data-path="data.sequence"]', (it) => it.checkVisibility()), false);
    // What is not counted is said.
    assert.match(await visit.at(".verdict", (it) => it.innerText), /not modelled/);
  }
  // The map fills after the answer.
  await until("the map's axes", async () => /frames \\ pixels/.test(await visit.at('[data-testid="map"] thead', (it) => it.innerText)));
});

test("a file that names no model changes nothing, and says so", async ({ visit }) => {
  await visit.open();
  const before = await about(visit);
  const file = join(visit.downloads, "config.json");
  writeFileSync(file, '{"model_type": "nonsense-9000", "hidden": "x"}');
  await visit.upload(file);
  await until("the refusal", async () => (await visit.page.$(".link-notes li")) !== null);
  assert.equal(await about(visit), before);
  assert.ok(await visit.at("#any", (it) => it.checkVisibility()));
});

test("heads that cannot be grouped are refused, and the last answer is marked", async ({ visit }) => {
  await visit.open(`${visit.site.url}#v=1&model=llama-3.2-1b&mb=1`);
  await visit.page.evaluate(() => (location.hash = "v=1&model=llama-3.2-1b&dims=heads=10,kv=3&mb=1"));
  await until("the problem", async () => /10 attention heads cannot share 3/.test(await visit.at(".verdict", (it) => it.innerText)));
});

test("more GPUs than a machine holds stand in several", async ({ visit }) => {
  await visit.open(`${visit.site.url}#v=1&model=llama-3.1-8b&dims=layers=2&gpu=h100-sxm5-80gb&seq=64&mb=1&gpus=32&par=fsdp2`);
  const machines = () => visit.all('[data-testid="cluster"] .machine', (all) => all.map((it) => it.innerText));
  await until("machines 1 to 4", async () => /Machines 1–4/.test((await machines()).join()));
});

test("files have the learning rate that the method needs", async ({ visit }) => {
  await Person.open(visit, headroom(["link", "llama-8b-lora-24gb"]).trim());
  await visit.select("#export-target", "trl");
  await until("the file", async () => (await visit.page.$$eval("#files pre", (all) => all.map((it) => it.textContent).join())).includes("learning_rate: 0.0002"));
});

test("a link's settings are not marked as changed, and its notice goes by itself", async ({ visit }) => {
  await visit.open(`${visit.site.url}#v=1&model=llama-3.2-1b&mb=2&seq=512&accum=2&optim=sgd`);
  assert.equal(await visit.page.$(".changed:not([hidden])"), null);
  await visit.kept();
  await visit.page.waitForSelector("#offline-notice", { hidden: true, timeout: 15_000 });
});

for (const width of [1440, 360]) {
  test(`a page of ${width} pixels ends where its content does`, async ({ visit }) => {
    await visit.page.setViewport({ width, height: 900 });
    await visit.open();
    // The notice of a first visit stays for some seconds; it takes no room either.
    await visit.visible("#offline-notice");
    const [end, bottom] = await visit.page.evaluate(() => [
      document.documentElement.scrollHeight,
      Math.max(...[...document.querySelectorAll("#app footer, #app .answers > *")].map((it) => it.getBoundingClientRect().bottom + scrollY)),
    ]);
    assert.ok(end - bottom < 60, `${end - bottom} px of nothing`);
  });
}

test("names of GPUs are whole", async ({ visit }) => {
  await visit.open();
  await visit.type('[name="hardware.gpu"]', "H100");
  const cut = await visit.all('[id="hardware.gpu.list"] [role=option]', (all) => all.filter((it) => it.scrollWidth > it.clientWidth + 1).map((it) => it.innerText));
  assert.deepEqual(cut, []);
});

test("a guide's table gives most of its width to reasons", async ({ visit }) => {
  await visit.page.setViewport({ width: 1440, height: 900 });
  await visit.open();
  await visit.select("#preset", "dreams");
  await visit.page.waitForSelector('[data-testid="guide"]:not([hidden])');
  await unfold(visit, "guide");
  await visit.page.waitForFunction(() => document.querySelectorAll('[data-testid="guide"] .badge').length > 5);
  const [widths, text, tallest] = await visit.at('[data-testid="guide"] table', (it) => [
    [...it.rows[0].cells].map((cell) => cell.getBoundingClientRect().width),
    it.innerText,
    Math.max(...[...it.rows].map((row) => row.getBoundingClientRect().height)),
  ]);
  assert.ok(widths[3] > 250 && widths[2] < 200, widths.join());
  assert.ok(tallest < 350, `a row of ${tallest} px`);
  assert.doesNotMatch(text, /\*\*/);
});

test("numbers of modules stand apart", async ({ visit }) => {
  await visit.open();
  await unfold(visit, "modules");
  const gaps = await visit.all('[data-testid="modules"] .tensors tbody tr', (rows) =>
    rows.flatMap((row) => {
      const boxes = [...row.cells].map((cell) => {
        const range = document.createRange();
        range.selectNodeContents(cell);
        return range.getBoundingClientRect();
      });
      return boxes.slice(1).map((box, at) => box.left - boxes[at].right);
    }),
  );
  assert.ok(Math.min(...gaps) >= 8, gaps.join());
});

test("micro-batches that are not drawn are said", async ({ visit }) => {
  await visit.open(`${visit.site.url}#v=1&dims=layers=2,hidden=128,heads=2&seq=64&mb=1&accum=64`);
  const panel = () => visit.at("[aria-labelledby=timeline-title]", (it) => it.innerText);
  await until("the omission", async () => /\d+ of 64 micro-batches are drawn/.test(await panel()));
});

test("the slider's thumb is below the cursor", async ({ visit }) => {
  await visit.page.setViewport({ width: 1440, height: 900 });
  await visit.open();
  const off = await visit.at('[data-testid="timeline"]:has(.cursor)', (it) => {
    const slider = it.querySelector(".scrubber");
    const cursor = it.querySelector(".cursor").getBoundingClientRect();
    const track = slider.getBoundingClientRect();
    const thumb = 16;
    const share = (slider.value - slider.min) / (slider.max - slider.min);
    return track.left + thumb / 2 + share * (track.width - thumb) - cursor.left;
  });
  assert.ok(Math.abs(off) < 1.5, `${off} px`);
});

test("the first screen has few controls and few words", async ({ visit }) => {
  await visit.page.setViewport({ width: 1440, height: 900 });
  await visit.open();
  await visit.page.waitForSelector('[data-testid="plans-strip"] [aria-busy=false]');
  const [controls, words] = await visit.page.evaluate(() => {
    const seen = (it) => it.checkVisibility({ visibilityProperty: true }) && it.getBoundingClientRect().top < innerHeight && it.getClientRects().length > 0;
    const controls = [...document.querySelectorAll("#app :is(button, input, select, textarea, summary, a[href], [role=grid])")].filter(
      (it) => seen(it) && getComputedStyle(it).clipPath === "none" && it.type !== "file",
    );
    const walk = document.createTreeWalker(document.querySelector("#app"), NodeFilter.SHOW_TEXT);
    let words = 0;
    while (walk.nextNode()) {
      const parent = walk.currentNode.parentElement;
      if (!seen(parent) || parent.closest("select, .aside, [role=grid], svg")) continue;
      words += walk.currentNode.data.split(/\s+/).filter((word) => /[a-z]{2}/i.test(word)).length;
    }
    return [controls.map((it) => it.outerHTML.slice(0, 60)), words];
  });
  assert.ok(controls.length <= 40, `${controls.length} controls: ${controls.join("\n")}`);
  assert.ok(words <= 250, `${words} words`);
});

test("all settings are found from one field, with what set each", async ({ visit }) => {
  const { page } = visit;
  await visit.open(`${visit.site.url}#v=1&trainer=trl&model=llama-3.2-1b`);
  await page.evaluate(() => document.activeElement.blur());
  await page.keyboard.press("/");
  await page.keyboard.type("gradient clipping");
  assert.match(await visit.at('[data-testid="find-setting"]:has([name="find.training.clip"])', (it) => it.innerText), /default/);
  await page.keyboard.press("Escape");
  await until("nothing found", async () => (await page.$('[name="find.training.clip"]')) === null);
});

test("a point of the chart is a plan", async ({ visit }) => {
  const { page } = visit;
  await visit.open();
  await visit.set("data.micro_batch", "64");
  const before = await visit.bytes();
  const label = await visit.at('[data-testid="time-memory"] .point.plan', (it) => {
    it.dispatchEvent(new MouseEvent("click", { bubbles: true }));
    return it.getAttribute("aria-label");
  });
  assert.match(label, /GiB, .* a step/);
  await until("the plan to be taken", async () => (await visit.bytes()) < before);
});

test("no focus is under the help of another field", async ({ visit }) => {
  const { page } = visit;
  await page.setViewport({ width: 1440, height: 900 });
  await visit.open();
  await visit.at('[data-testid="settings"]', (it) => void (it.open = true));
  await visit.focus('[name="hardware.gpu"]');
  const covered = [];
  for (let stops = 0; stops < 40; stops += 1) {
    await page.keyboard.press("Tab");
    const under = await page.evaluate(() => {
      const it = document.activeElement;
      const help = document.querySelector(".explainer");
      if (!it.closest(".questions") || !help.innerText.trim()) return "";
      const [a, b] = [it.getBoundingClientRect(), help.getBoundingClientRect()];
      return a.bottom > b.top + 1 && a.top < b.bottom - 1 ? it.name || it.outerHTML.slice(0, 60) : "";
    });
    if (under) covered.push(under);
  }
  assert.deepEqual(covered, []);
});
