// Prints what the page weighs and fails where it is over its budget: node scripts/size.mjs DIST
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync } from "node:zlib";

// What a visitor waits for is compressed bytes: all that the first answer needs, which on a slow line has to come within
// 4.5 s. The module's second part comes behind it. The raw sizes are for information. Reading YAML, so that every trainer's own
// file opens on the page, is 13,000 and 31,000 of these bytes; twelve architectures with their models, the optimizers of
// transformers' names and the comparison of snapshots came to about 18,000 and 47,000; training in low precision, DataParallel and
// the rows of 26 recorded models to 13,000 and 17,000; trainers' tasks under the sharders, Qwen's first own file and stages that
// fold to 1,500 and 7,000; nine more of PEFT's adapters and what of a model is trained beside them to 7,000 and 6,000. FLUX.2,
// torchtune's and accelerate's ways and more mechanisms of ranks among several took the first from under 540,000 to 541,200. Where
// Rust comes from rustup both parts weigh 2 % more than with Debian's compiler, which builds the standard library for size as well:
// the budgets are for the heavier.
const BUDGET = { "first answer": 544_000, "second part": 756_000 };
// Kept by the browser for the home screen, and asked for by nobody before the first answer.
const BESIDE = /^(icon|manifest|sw|worker)\b/;

const [dist] = process.argv.slice(2);
const files = readdirSync(dist, { withFileTypes: true }).filter((it) => it.isFile() && !BESIDE.test(it.name));
const weighed = files.map(({ name }) => {
  const bytes = readFileSync(join(dist, name));
  return { name, raw: bytes.length, brotli: brotliCompressSync(bytes).length };
});
for (const { name, raw, brotli } of weighed) console.log(`     ${name}: ${raw} bytes, ${brotli} brotli`);
if (weighed.filter((it) => it.name.endsWith(".wasm")).length !== 2) throw new Error(`${dist}: expected a module in two parts`);

const sum = (all) => all.reduce((sum, it) => sum + it.brotli, 0);
const isSecond = (it) => it.name.startsWith("headroom-later");
let failed = 0;
for (const [what, size] of [
  ["first answer", sum(weighed.filter((it) => !isSecond(it)))],
  ["second part", sum(weighed.filter(isSecond))],
]) {
  const fits = size <= BUDGET[what];
  if (!fits) failed += 1;
  console.log(`${fits ? "ok  " : "FAIL"} ${what}: ${size} bytes of ${BUDGET[what]}, brotli`);
}
console.log(`${2 - failed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);
