// Each panel at its work.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { becomes, until } from "./browser.mjs";
import { accessible, allocated, headroom, test, undo, unfold } from "./test.mjs";

test("advice is worked out in the background, can be taken and taken back", async ({ visit }) => {
  await visit.open();
  await visit.set("data.micro_batch", "64");
  const before = await visit.bytes();
  await visit.press('[data-testid="plans-strip"] [aria-busy=false] li button');
  await until("the advice to be taken", async () => (await visit.bytes()) < before);
  assert.match(await visit.at("#verdict", (it) => it.innerText), /fits/);
  // What was before stays to be seen behind what is.
  await visit.page.waitForSelector('[data-testid="timeline"] .line-ghost');
  await undo(visit);
  await until("the run before", async () => (await visit.bytes()) === before);
});

test("every panel of advice fills", async ({ visit }) => {
  await visit.open(`${visit.site.url}#v=1&dims=layers=2,hidden=128,heads=2&seq=64`);
  for (const panel of ["moves", "reach", "cards", "steps"]) await unfold(visit, panel);
  for (const panel of ["moves", "reach", "cards"]) {
    await visit.page.waitForSelector(`[data-testid="${panel}"] [aria-busy=false] tbody tr`);
  }
  await visit.page.waitForSelector('[data-testid="steps"] tbody tr');
  await visit.page.waitForSelector('[data-testid="steps"] .plot .line-soft');
  assert.deepEqual(visit.heard, []);
});

test("a network is declared by keyboard, checked as it is typed, and taken back", async ({ visit }) => {
  const { page } = visit;
  const { keyboard } = page;
  await visit.open();
  const focused = () => page.evaluate(() => document.activeElement.id || document.activeElement.dataset.do);
  const into = async (selector, ...keys) => {
    await visit.at(selector, (it) => it.focus());
    for (const key of keys) await keyboard.press(key);
  };
  const agrees = async (said) => {
    // A long network travels squeezed, so the command line reads it.
    const link = await until(`a link whose network says ${said}`, async () => {
      const link = await page.evaluate(() => location.href);
      return link.includes("#") && said.test(headroom(["open", link])) && link;
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
  await page.waitForFunction(() => /expected a new name and a whole number/.test(document.querySelector("#net-0-").innerText));
  assert.equal(await focused(), "net-0-value0");
  assert.equal(await visit.at("#net-0-value0", (it) => it.value), "6x");
  await keyboard.press("Backspace");
  await keyboard.type("4");
  await page.waitForSelector("#net-0-value0[aria-invalid=false]");

  // What reads well and does not fit is said where it stands.
  await into("#net-2-repeat");
  await keyboard.type("2");
  await page.waitForFunction(() => /cannot go in again/.test(document.querySelector("#net-2-").innerText));
  await keyboard.press("Backspace");

  // Rows come, move and go, and the keyboard stays with them.
  const kinds = () => visit.all("#network-rows legend", (all) => all.map((it) => it.firstChild.data.trim()).join(" "));
  const before = await kinds();
  await into('[data-do=add][data-row="2"][data-kind=dropout]', "Enter");
  await until("the field of the new row to be focused", async () => (await focused()) === "net-6-p");
  await into('[data-do=up][data-row="6"]', "Enter");
  await until("the button to have moved with its row", () => page.evaluate(() => document.activeElement.matches('[data-do=up][data-row="5"]')));
  assert.equal(await kinds(), before.replace("activation", "dropout activation"));
  await agrees(/layer: dropout/);
  await into('[data-do=remove][data-row="5"]', "Enter");
  await until("the row to go", async () => (await kinds()) === before);
  await undo(visit);
  await until("the row to be back", async () => (await kinds()) === before.replace("activation", "dropout activation"));

  // The text beside them is the same network.
  await visit.at("#network-text", (it) => {
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
  await visit.press('[data-testid="map"] [data-cell="0 0"]');
  await visit.address("seq=128");
  await becomes("the cell's batch", () => visit.at('[name="data.micro_batch"]', (it) => it.value), "1");
});

test("plans are kept by name, and come back from their file", async ({ visit }) => {
  await visit.open();
  await visit.set("data.micro_batch", "3");
  await unfold(visit, "plans");
  await visit.type('[data-testid="plans"] input', "three <b>");
  const buttons = '[data-testid="plans"] .actions button';
  await visit.press(buttons);
  await visit.page.waitForSelector('[data-testid="plans"] [data-open]');
  const { name } = await visit.download(`${buttons}:last-child`);
  assert.equal(name, "headroom-plans.json");

  await visit.press('[data-testid="plans"] [data-forget]');
  await until("no plans", async () => (await visit.page.$('[data-testid="plans"] [data-open]')) === null);
  await visit.set("data.micro_batch", "5");
  await visit.upload(join(visit.downloads, name));
  assert.equal(await visit.at('[data-testid="plans"] [data-open]', (it) => it.innerText), "three <b>");
  await visit.press('[data-testid="plans"] [data-open]');
  await visit.address("mb=3");
});

test("two tabs keep each other's plans, and delete the ones that they name", async ({ visit }) => {
  const save = async (name) => {
    await unfold(visit, "plans");
    await visit.type('[data-testid="plans"] input', name);
    await visit.press('[data-testid="plans"] [data-do="save"]');
    await visit.page.waitForFunction((name) => document.querySelector('[data-testid="plans"] ul').innerText.includes(name), {}, name);
  };
  const stored = () => visit.page.evaluate(() => localStorage.getItem("headroom.plans"));
  await visit.open();
  const first = visit.page;
  await save("one");
  await save("two");
  visit.page = await visit.newPage();
  await visit.open();
  await save("three");
  await unfold(visit, "plans");
  visit.page = first;
  await first.bringToFront();
  // This tab knows nothing of the third.
  await visit.press('[data-testid="plans"] [aria-label="Delete two"]');
  await until("one and three to be left", async () => {
    const names = await stored();
    return /one/.test(names) && !/two/.test(names) && /three/.test(names);
  });
});

test("a file of ours opens as the run it was written for", async ({ visit }) => {
  await visit.open();
  await visit.set("data.micro_batch", "3");
  const bytes = await visit.bytes();
  const { name } = await visit.download('[data-testid="export-yaml"]');
  await visit.set("data.micro_batch", "5");
  await visit.upload(join(visit.downloads, name));
  await until("the run of the file", async () => (await visit.bytes()) === bytes);
});

test("a recorded model is dropped, answers as on the command line, and travels in its link", async ({ visit }) => {
  const file = readFileSync(new URL("../../crates/headroom-core/src/nets/graph/fixtures/lasting.json", import.meta.url), "utf8");
  await visit.open();
  const before = await visit.bytes();
  // As a person drops it: the file itself, not a choice in a dialogue.
  await visit.page.evaluate((text) => {
    const carried = new DataTransfer();
    carried.items.add(new File([text], "model.json", { type: "application/json" })); // in the browser
    document.body.dispatchEvent(new DragEvent("drop", { dataTransfer: carried, bubbles: true, cancelable: true }));
  }, file);
  await until("the answer for the model", async () => (await visit.bytes()) !== before);
  const bytes = await visit.bytes();
  assert.equal(bytes, allocated(file));
  const link = await visit.address("rec=");
  await visit.set("data.micro_batch", "3");
  await undo(visit);
  await until("the run before", async () => (await visit.bytes()) === bytes);
  // Another window, which knows of no file.
  const other = await visit.newPage();
  await other.goto(link, { waitUntil: "load" });
  const shown = '[data-testid="allocated-bytes"][data-bytes]';
  await other.waitForSelector(shown);
  assert.equal(await other.$eval(shown, (it) => Number(it.dataset.bytes)), bytes);
  await other.close();
  assert.deepEqual(await visit.violations(), []);
});

test("charts are saved as drawing, picture and numbers", async ({ visit }) => {
  await visit.open();
  await visit.at('[data-testid="timeline"] ~ details:last-of-type', (it) => void (it.open = true));
  await visit.page.waitForSelector('[data-testid="save-timeline"]');
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
  await visit.type("#doctor", `${[0, 1, 2].map(line).join("\n")}\n`);
  await visit.page.waitForSelector('[data-testid="measured"] svg .line-ghost');
  await visit.page.waitForFunction(() => /16\.0 GiB/.test(document.querySelector('[data-testid="measured"] table')?.innerText));
  const verdict = () => visit.at("#verdict", (it) => it.innerText);
  const before = await verdict();
  await visit.press('[data-testid="measured"] .actions button');
  await visit.address("kept=");
  await until("the answer to be corrected", async () => (await verdict()) !== before);
  await visit.press('[data-testid="calibrated"] button');
  await until("the difference to go", async () => (await visit.page.$('[data-testid="calibrated"]')) === null);
  const { name } = await visit.download('[data-testid="probe"]');
  assert.equal(name, "headroom_probe.py");
});

test("an error is compared with the run on the screen, whose plans that fit stand beside the cause", async ({ visit }) => {
  const { page } = visit;
  await visit.open();
  await visit.set("data.micro_batch", "64");
  const before = await visit.bytes();
  await visit.type("#doctor", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 12.00 GiB. GPU 0 has a total capacity of 23.64 GiB of which 1.00 GiB is free.");
  const report = '[data-testid="doctor"] .report';
  await page.waitForSelector(`${report} h4`);
  assert.equal(await page.$(`${report} .plan-rows`), null);
  await visit.press('[data-testid="doctor"] .question button.primary');
  await page.waitForSelector(`${report} .plan-rows li button`);
  await page.waitForFunction((it) => /needs more memory than the GPU has/.test(document.querySelector(it).innerText), {}, report);
  await visit.press(`${report} .plan-rows li button`);
  await until("a plan to be applied", async () => (await visit.bytes()) < before);
  // The text is not about the run that it is now, so it is asked again.
  await page.waitForSelector('[data-testid="doctor"] .question button.primary');
  assert.equal(await page.$(`${report} .plan-rows`), null);
  assert.deepEqual(visit.heard, []);
});

/** A pickle as PyTorch writes one, of maps, lists, texts and numbers. */
function pickle(value) {
  const part = (value) => {
    if (typeof value === "number") {
      const bytes = Buffer.alloc(8);
      bytes.writeBigInt64LE(BigInt(value));
      return [0x8a, 8, ...bytes];
    }
    if (typeof value === "string") return [0x8c, value.length, ...Buffer.from(value)];
    if (Array.isArray(value)) return [..."](".split("").map((it) => it.charCodeAt(0)), ...value.flatMap(part), 0x65];
    const items = Object.entries(value);
    return [0x7d, 0x28, ...items.flatMap(([key, value]) => [...part(key), ...part(value)]), 0x75];
  };
  return Uint8Array.from([0x80, 4, ...part(value), 0x2e]);
}

test("a memory snapshot says which lines hold the memory, and what the run on the screen has not", async ({ visit }) => {
  const { page } = visit;
  await visit.open();
  const block = (state, size, line) => ({ state, size, requested_size: size, frames: [{ filename: "/home/me/train.py", line, name: "step" }] });
  const blocks = [block("active_allocated", 3 * 2 ** 30, 42), block("inactive", 2 ** 30, 0)];
  const open = async (name, bytes) => {
    const file = join(visit.downloads, name);
    writeFileSync(file, bytes);
    await visit.upload(file);
  };
  const said = () => visit.at('[data-testid="snapshot"]', (it) => it.innerText);
  await open("snapshot.pickle", pickle({ segments: [{ device: 0, total_size: 4 * 2 ** 30, blocks }], device_traces: [] }));
  await until("the snapshot to be told", async () => /3\.00 GiB allocated of 4\.00 GiB reserved/.test(await said()));
  assert.match(await said(), /me\/train\.py:42 step\s+1\s+3\.00 GiB/);
  // It is compared only where somebody says that it is this run.
  assert.doesNotMatch(await said(), /Not in the run/);
  await visit.press('[data-testid="snapshot"] button.primary');
  await until("the comparison", async () => /Not in the run on the screen\s+Made by\s+Blocks\s+Each\s+me\/train\.py:42 step/.test(await said()));
  assert.equal(await page.evaluate(() => document.activeElement.id), "diagnose-title");
  await accessible(visit, "a snapshot");
  await open("other.pickle", "no pickle at all");
  await until("the refusal", async () => /not a PyTorch memory snapshot/.test(await said()));
  await visit.press('[data-testid="snapshot"] .actions button');
  await page.waitForSelector('[data-testid="snapshot"][hidden]');
  assert.deepEqual(visit.heard, []);
});

test("several GPUs show what each holds and computes", async ({ visit }) => {
  const { page } = visit;
  const small = "dims=layers=2,hidden=128,heads=2&seq=64";
  await visit.open(`${visit.site.url}#v=1&${small}`);
  assert.equal(await visit.at('[data-testid="ranks"]', (it) => it.hidden), true);
  // A link that is pasted over the other.
  await page.evaluate(() => (location.hash = "v=1&model=llama-3.1-8b&dims=layers=2&seq=64&mb=1&gpus=2&pp=2&accum=2"));
  await page.waitForFunction(() => {
    const rows = [...document.querySelectorAll('[data-testid="ranks"] tbody tr')];
    return rows.map((it) => it.cells[0].innerText).join() === "Stage 1,Stage 2" && rows.every((it) => it.querySelectorAll("rect").length > 3);
  });
  // One machine with a GPU for each stage, and what each stage computes when.
  const machines = () => visit.all('[data-testid="cluster"] .machine', (all) => all.map((it) => it.innerText.split(/\s*\n\s*/).join()));
  await becomes("the machines", machines, ["Machine 1,Stage 1,Stage 2"]);
  await page.waitForSelector('[data-testid="pipeline"]:not([hidden]) svg .fill-backward');
  const boxes = () => visit.all('[data-testid="pipeline"] .drawing polygon', (all) => all.length);
  await becomes("two stages, two micro-batches, forward and back", boxes, 8);
  const waits = /each GPU is idle (\d+) % of the time/.exec(await visit.at('[data-testid="pipeline"]', (it) => it.innerText));
  // A third of the passes, which are not all of the step.
  assert.ok(Number(waits[1]) > 5 && Number(waits[1]) < 33, waits[0]);
  // A plan that is applied is the run: the page then needs what its row said.
  const needs = await visit.at('[data-testid="planner"] > .advice[aria-busy=false] tbody tr:last-child', (row) => {
    row.querySelector("button").click();
    return row.querySelector('[data-head="Needs"]').innerText;
  });
  await page.waitForFunction((needs) => document.querySelector(".verdict").innerText.includes(needs), {}, needs);
  await page.waitForFunction(() => document.activeElement.id === "place-change");
  await accessible(visit, "several GPUs");
  assert.deepEqual(visit.heard, []);
});

test("the network's panel says how a model in Python is recorded", async ({ visit }) => {
  await visit.open();
  await unfold(visit, "network");
  const lines = await visit.at('[data-testid="network"] .record pre', (it) => it.innerText.trim().split("\n"));
  assert.equal(lines.length, 3);
  assert.match(lines[0], /^headroom record > headroom_record\.py$/);
  // What the first line prints has what the last one calls.
  const name = /import (\w+);/.exec(lines[2])[1];
  assert.match(headroom(["record"]), new RegExp(`^def ${name}\\(`, "m"));
});

test("a system's guide stands beside what is computed", async ({ visit }) => {
  await visit.open();
  await visit.select("#preset", "dreams");
  await visit.page.waitForSelector('[data-testid="guide"]:not([hidden])');
  await unfold(visit, "guide");
  await visit.page.waitForFunction(
    () => {
      const rows = [...document.querySelectorAll('[data-testid="guide"] tbody tr')];
      return rows.length > 5 && rows.every((it) => it.children[1].innerText !== "…");
    },
  );
});

test("every program shows the files that the command line writes, or says what it cannot express", async ({ visit }) => {
  const { page } = visit;
  let written = 0;
  for (const preset of ["gpt2-small", "llama-8b-lora-24gb", "dreams"]) {
    const link = headroom(["link", preset]).trim();
    await visit.open(`${visit.site.url}${link}`);
    const targets = await visit.all("#export-target option", (all) => all.map((option) => option.value));
    for (const target of targets) {
      const expected = files(link, target);
      await visit.select("#export-target", target);
      await until(`${target} of ${preset} to show ${Object.keys(expected).join(", ") || "problems"}`, async () => {
        const shown = await page.$$eval("#files pre", (all) => Object.fromEntries(all.map((pre) => [pre.id, pre.textContent])));
        return isDeepStrictEqual(shown, expected) && { shown };
      });
      if (Object.keys(expected).length === 0) assert.ok((await page.$$(".remedies li")).length > 0, `${target} of ${preset} says nothing`);
      written += Object.keys(expected).length;
    }
  }
  assert.ok(written > 40, `${written} files were shown`);
});

/** Contents by name of what the command line writes for a target; nothing where it refuses. */
function files(link, target) {
  try {
    return JSON.parse(headroom(["export", link, "--target", target, "--json"])).files;
  } catch (problem) {
    if (problem.status === 2) return {};
    throw problem;
  }
}
