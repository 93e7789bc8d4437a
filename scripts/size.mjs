// Prints what the page weighs and fails where it is over its budget: node scripts/size.mjs DIST
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync } from "node:zlib";

const BUDGET = { raw: 350_000, brotli: 150_000 };

const [dist] = process.argv.slice(2);
const modules = readdirSync(dist).filter((it) => it.endsWith(".wasm"));
if (modules.length !== 1) throw new Error(`${dist}: expected one .wasm file, found ${modules.length}`);
const bytes = readFileSync(join(dist, modules[0]));
const sizes = { raw: bytes.length, brotli: brotliCompressSync(bytes).length };

let failed = 0;
for (const [kind, size] of Object.entries(sizes)) {
  const fits = size <= BUDGET[kind];
  if (!fits) failed += 1;
  console.log(`${fits ? "ok  " : "FAIL"} wasm ${kind}: ${size} bytes of ${BUDGET[kind]}`);
}
console.log(`${2 - failed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);
