// Holds the memory that a prediction adds to WebAssembly's: node scripts/memory.mjs LAPS.wasm, which is crates/headroom-systems/examples/laps.rs.
import { readFileSync } from "node:fs";

/** The most that any model of the catalogue may add: 11.31 MiB were used when this was set, by Jamba, whose scans are long. */
const MOST_MIB = 12;
/** In crates/headroom-systems/examples/laps.rs, the models of the catalogue come after so many cases that are timed. */
const TIMED = 4;
/** More than the catalogue has: a number without a model predicts nothing. */
const NUMBERS = 1000;

const module = new WebAssembly.Module(readFileSync(process.argv[2]));

/** The MiB that one case adds to the memory of a module that has run nothing else. */
function added(number) {
  const { memory, main } = new WebAssembly.Instance(module).exports;
  // "HEADROOM" as the number that crates/headroom-systems/examples/laps.rs begins with, the way this memory writes numbers.
  const at = Buffer.from(memory.buffer).indexOf("MOORDAEH");
  const before = memory.buffer.byteLength;
  new DataView(memory.buffer).setBigUint64(at, BigInt(number), true);
  main(0, 0);
  return (memory.buffer.byteLength - before) / 2 ** 20;
}

const models = Array.from({ length: NUMBERS }, (_, model) => [added(TIMED + model), model]);
models.sort(([a], [b]) => b - a);
const over = models.filter(([mib]) => mib > MOST_MIB);
const [most] = models[0];
const [nothing] = models[NUMBERS - 1];
console.log(`the models of the catalogue whose predictions add the most memory, by their places in it (budget ${MOST_MIB} MiB):`);
for (const [mib, model] of models.slice(0, 5)) console.log(`  ${model}: ${mib.toFixed(2)} MiB`);
if (over.length > 0 || most <= nothing) process.exit(1);
