// What people come for, each done as a person does it: found by what it says, with the number of actions counted.
import assert from "node:assert/strict";
import { until } from "./browser.mjs";
import { Person } from "./person.mjs";
import { headroom, test } from "./test.mjs";

const address = (visit) => visit.page.evaluate(() => location.hash);

/** (a) "RTX 4090, LoRA on Llama-3.1-8B at 4k: does it fit, the largest batch, the TRL command." */
async function lora(visit, hands) {
  const person = await Person.open(visit, "", hands);
  await person.fill("Say it", "RTX 4090, LoRA on Llama-3.1-8B at 4k");
  await visit.address("llama-3.1-8b");
  await visit.address("lora=on");
  await visit.address("seq=4096");
  await person.choose("Written for", "TRL");
  // Plans are for this program from now on.
  await visit.page.waitForFunction(() => {
    const rows = [...document.querySelectorAll('[data-testid="planner"] > .advice [data-head="Supported by"]')];
    return rows.length > 0 && rows.every((row) => /TRL/.test(row.innerText));
  });
  await person.press("Apply fastest", "button");
  await until("a run that fits", async () => /fits/.test(await visit.at("#verdict", (verdict) => verdict.innerText)));
  await person.press("Copy command", "button");
  assert.ok(person.actions <= 4, `${person.actions} actions`);
  const command = await person.clipboard();
  assert.match(command, /trl sft/);
  assert.match(command, /model_name_or_path: meta-llama\/Llama-3\.1-8B/);
  assert.match(command, /use_peft: true/);
  assert.match(command, /max_length: 4096/);
  assert.match(command, /dtype: bfloat16/);
  // The command carries the run, and that fits.
  const link = /# Scenario: (#\S+)/.exec(command)[1];
  const estimate = JSON.parse(headroom(["estimate", link, "--json"]));
  assert.equal(estimate.fits, true);
  assert.deepEqual(visit.heard, []);
}
test("errand a: LoRA on a 24 GB card ends in a command for TRL that fits", ({ visit }) => lora(visit, "mouse"));
test("errand i: the same on a phone", ({ visit }) => lora(visit, "touch"));
test("errand j: the same with the keyboard alone", ({ visit }) => lora(visit, "keyboard"), "chrome");

const MESSAGE =
  "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.10 GiB of which 1.10 GiB is free. " +
  "Including non-PyTorch memory, this process has 78.00 GiB memory in use. Of the allocated memory 76.00 GiB is allocated by PyTorch, and 1.00 GiB is reserved by PyTorch but unallocated.";

test("errand b: an error is not compared with a run that is not its own", async ({ visit }) => {
  const person = await Person.open(visit);
  await person.paste("Paste the error", MESSAGE);
  await person.reads(/Is this the run on the screen\?/);
  assert.doesNotMatch(await person.text(), /kept from step to step \(\d+ % sure\)/);
  await person.press("Use this GPU", "button");
  await visit.address("80gb");
  assert.ok(person.actions <= 2);
  await person.press("No", "button");
  await person.reads(/Not compared with your settings/);
});

test("errand c: the smallest GPU for full fine-tuning, with where to rent it and what it costs", async ({ visit }) => {
  const person = await Person.open(visit);
  await person.fill("Say it", "full fine-tuning of Qwen2.5-7B");
  await visit.address("qwen2.5-7b");
  await person.press("Which GPUs", "summary");
  const cards = '[data-testid="cards"] [aria-busy=false] tbody tr';
  const rows = await visit.all(cards, (all) => all.map((row) => row.innerText));
  assert.ok(person.actions <= 2);
  assert.ok(rows.length <= 10 && /\d+ GB/.test(rows[0]), rows[0]);
  const table = await visit.at(cards, (row) => row.closest('[data-testid="cards"]').innerText);
  assert.doesNotMatch(table, /expected|`/);
  assert.match(table, /AWS|Google|Azure/);
  await person.fill("Your price for a GPU hour", "2,50");
  await person.reads(/per step/);
  // What is asked is full fine-tuning: what trains otherwise is named as that.
  await visit.page.waitForSelector('[data-testid="planner"] [aria-busy=false]');
  assert.match(await visit.at('[data-testid="planner"] header', (it) => it.innerText), /if more may change/);
  const plans = await visit.all('[data-testid="planner"] > .advice tbody tr', (all) => all.map((it) => it.innerText));
  for (const row of plans.filter((row) => /LoRA/.test(row))) assert.match(row, /changes training/);
});

test("errand d: several GPUs that share a large model", async ({ visit }) => {
  const person = await Person.open(visit);
  await person.fill("Model", "Llama-3-70B");
  await visit.address("70b");
  await person.fill("GPU", "H100 SXM");
  await visit.address("h100");
  await person.fill("GPUs", "8");
  await visit.address("gpus=8");
  assert.ok(person.actions <= 3);
  await person.reads(/Needs [\d.,]+ [KMGT]iB/);
  // Eight GPUs share a model of this size, as people start with it; the strategy is a chip.
  await visit.address("par=fsdp2");
  const bytes = await visit.bytes();
  await person.press("FSDP 2", "button");
  await visit.select('[name="chip.parallel.strategy"]', "ddp");
  await until("DDP to need more than FSDP", async () => (await visit.bytes()) > bytes * 4);
});

test("errand e: a model of one's own is not called by another's name", async ({ visit }) => {
  const person = await Person.open(visit, "#v=1&model=llama-3.2-1b&dims=layers=8,hidden=1536,ffn=6144&seq=512&mb=1");
  const verdict = await person.text();
  assert.doesNotMatch(verdict, /Llama 3\.2 1B, full training/);
  assert.match(verdict, /like Llama 3\.2 1B/);
});

test("errand f: two runs are compared, and whoever opens the link sees it at once", async ({ visit }) => {
  const person = await Person.open(visit);
  await person.press("Keep this as A", "button");
  await person.fill("Micro-batch", "4");
  await visit.address("mb=4&vs");
  assert.ok(person.actions <= 2);
  const link = await address(visit);
  // What both have in common is there once.
  assert.ok(link.split("&vs&")[1].length < 20, link);
  visit.page = await visit.newPage();
  const receiver = await Person.open(visit, link);
  await until("the difference on the first screen", () => receiver.onScreenOne(/Compared with A: [+−]/), 30_000);
});

test("errand g: a system's guide is announced where the system is chosen", async ({ visit }) => {
  const person = await Person.open(visit, headroom(["link", "dreams"]).trim());
  assert.ok(await person.onScreenOne(/memory guide of its own/));
  await person.press("See what it gets right and wrong", "button");
  assert.ok(person.actions <= 1);
  await visit.page.waitForFunction(() => {
    const rows = [...document.querySelectorAll('[data-testid="guide"] tbody tr')];
    return rows.length > 5 && rows.every((row) => row.children[1].innerText !== "…");
  });
});

test("errand h: on a plane everything works", async ({ visit, site }) => {
  await visit.open();
  await visit.kept();
  await site.close();
  await visit.reload();
  const person = await Person.open(visit);
  await person.fill("Micro-batch", "2");
  await visit.address("mb=2");
  await person.press("Copy command", "button");
  assert.match(await person.clipboard(), /micro_batch_size: 2/);
});

for (const [what, said, text] of [
  ["an error without numbers", /has no numbers/, "RuntimeError: CUDA error: out of memory"],
  ["a snapshot", /memory snapshot/, "{'segments': [], 'device_traces': []}"],
  ["other text", /No known PyTorch error/, "hello"],
]) {
  test(`${what} gets an answer of its own`, async ({ visit }) => {
    const person = await Person.open(visit);
    await person.paste("Paste the error", text);
    await person.reads(said);
    assert.deepEqual(visit.heard, []);
  });
}

test("what a program cannot express has a button that changes it", async ({ visit }) => {
  const person = await Person.open(visit, "#v=1&model=llama-3.2-1b&loss=chunked-loss&ckpt=keep-half&mb=1");
  await person.choose("Written for", "TRL");
  await person.reads(/TRL \(trl sft, dpo, grpo \.\.\.\) can't express/);
  await person.press("Make all these changes", "button");
  await person.press("Copy command", "button");
  assert.match(await person.clipboard(), /trl sft/);
});

test("a size without a name asks which model", async ({ visit }) => {
  const person = await Person.open(visit);
  await person.fill("Say it", "full fine-tune of a 7B");
  await person.reads(/Which model\? “7B” is a size of many models, such as Qwen2\.5 7B/);
  assert.equal(person.actions, 1);
  assert.deepEqual(visit.heard, []);
});

test("a config.json is a model like one of the catalogue, in chips and verdict", async ({ visit }) => {
  const person = await Person.open(visit);
  const sizes = { hidden_size: 2560, intermediate_size: 6912, num_hidden_layers: 20, num_attention_heads: 20, num_key_value_heads: 5, vocab_size: 64000 };
  const config = { architectures: ["LlamaForCausalLM"], model_type: "llama", max_position_embeddings: 8192, ...sizes };
  // Several lines submit themselves.
  await person.paste("Say it", JSON.stringify(config, null, 2));
  await person.reads(/a model like Llama [^(]*\(layers 20, hidden 2560/);
  assert.match(await visit.at('[data-testid="ask"]', (it) => it.innerText), /like Llama .*own sizes/);
  assert.equal(person.actions, 1);
});

test("where there are fewer than three plans, their place says so", async ({ visit }) => {
  await visit.open();
  await visit.page.waitForSelector('[data-testid="plans-strip"] [aria-busy=false]');
  const rows = await visit.all('[data-testid="plans-strip"] .plan-rows li', (all) => all.length);
  const says = await visit.at('[data-testid="plans-strip"]', (it) => it.innerText);
  assert.equal(/No other run that fits/.test(says), rows > 0 && rows < 3);
  // A plan that is named by its first step says that once.
  const plans = await visit.all('[data-testid="plans-strip"] .plan-what', (all) => all.map((it) => it.innerText));
  for (const plan of plans) assert.match(plan, /^[A-Z]/);
});
