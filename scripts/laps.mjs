// The browser's half of scripts/laps: node scripts/laps.mjs FOLDER CHROMIUM
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { launch } from "../tests/e2e/browser.mjs";
import { serve } from "./static.mjs";

const [folder, executable] = process.argv.slice(2);
// In the order of crates/headroom-systems/examples/laps.rs.
const TIMED = ["Llama-3.1-8B, peak alone", "Llama-3.1-8B, with the allocator", "Llama-3.1-405B, peak alone", "Llama-3.1-405B, with the allocator"];
const BUDGETS = ["50 µs", "1 ms", "200 µs", "-"];

/** In the browser: the least time of each case in microseconds. */
async function measure(timed) {
  const module = await WebAssembly.compileStreaming(fetch("laps.wasm"));
  const { memory, main } = new WebAssembly.Instance(module).exports;
  // "HEADROOM" as the number that crates/headroom-systems/examples/laps.rs begins with, the way this memory writes numbers.
  const mark = new TextEncoder().encode("MOORDAEH");
  const bytes = new Uint8Array(memory.buffer);
  const at = bytes.findIndex((_, from) => mark.every((byte, offset) => bytes[from + offset] === byte));
  const predict = (number) => {
    new DataView(memory.buffer).setBigUint64(at, BigInt(number), true);
    main(0, 0);
  };
  const times = [];
  for (let number = 0; number < timed; number += 1) {
    let least = Infinity;
    // A browser's watch ticks in tenths of a millisecond, so a lap is many predictions.
    const many = number % 2 === 0 ? 40 : 8;
    for (let lap = 0; lap < 60; lap += 1) {
      const start = performance.now();
      for (let turn = 0; turn < many; turn += 1) predict(number);
      least = Math.min(least, (performance.now() - start) / many);
    }
    times.push(least * 1000);
  }
  return times;
}

const here = readFileSync(join(folder, "here"), "utf8").trim().split("\n").map(Number);
const site = await serve(folder, 0);
const browser = await launch("chrome", executable);
try {
  const page = await browser.newPage();
  await page.goto(site.url);
  const times = await page.evaluate(measure, TIMED.length);
  for (const [at, name] of TIMED.entries()) {
    const ratio = (times[at] / here[at]).toFixed(1);
    console.log(`${name}: ${here[at].toFixed(0)} µs here (budget ${BUDGETS[at]}), ${times[at].toFixed(0)} µs in Chromium, ${ratio} times (budget 3)`);
  }
} finally {
  await browser.close();
  await site.close();
}
