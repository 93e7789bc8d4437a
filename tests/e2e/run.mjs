// The end-to-end tests, in one browser: node run.mjs chrome|firefox EXECUTABLE [WORDS OF THE NAMES TO RUN]
// Each test gets a site of its own, so that no test finds another's offline copy or storage.
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { serve } from "../../scripts/static.mjs";
import { launch, Visit } from "./browser.mjs";
import { tests } from "./test.mjs";
import "./answers.mjs";
import "./site.mjs";
import "./panels.mjs";
import "./places.mjs";
import "./access.mjs";
import "./acceptance.mjs";
import "./errands.mjs";
import "./faults.mjs";
import "./crawl.mjs";

const DIST = new URL("../../dist", import.meta.url).pathname;
// Ten times what a test takes here: a slow machine is no failure. A test that works through thousands says its own.
const LIMIT_MS = 180_000;
// A page that cannot answer would keep every test to its limit, and say no more than the first ones did.
const MAX_LATE = 3;

const [kind, executable, words = ""] = process.argv.slice(2);
const scratch = mkdtempSync(join(tmpdir(), "headroom-e2e-"));
const browser = await launch(kind, executable);

/** A changed copy of the build, for what happens when a host serves something else. */
const copyOfDist = (name) => {
  const folder = join(scratch, name);
  cpSync(DIST, folder, { recursive: true });
  return folder;
};

let late = 0;

/** Runs a test once, on a site of its own; says whether it passed. */
async function attempt({ name, limit: own = LIMIT_MS, run }) {
  // Below a path, as a project's page on a shared host is.
  const site = await serve(DIST, 0, "/some/where/");
  const visit = await Visit.begin(browser, site, mkdtempSync(join(scratch, "downloads-")));
  const started = Date.now();
  let timer;
  const limit = new Promise((_, stop) => {
    timer = setTimeout(() => {
      late += 1;
      stop(new Error(`not done after ${own / 1000} s`));
    }, own);
  });
  try {
    await Promise.race([run({ kind, visit, site, copyOfDist }), limit]);
    console.log(`ok   ${kind}: ${name} (${Date.now() - started} ms)`);
    return true;
  } catch (problem) {
    console.log(`FAIL ${kind}: ${name}\n${problem.stack ?? problem}`);
    for (const line of visit.heard) console.log(`     browser: ${line}`);
    return false;
  } finally {
    clearTimeout(timer);
    await visit.end();
    await site.close();
  }
}

let passed = 0;
const failed = [];
const flaky = [];
for (const test of tests) {
  if ((test.only && test.only !== kind) || !test.name.includes(words)) continue;
  if (late >= MAX_LATE) {
    console.log(`not run: ${late} tests were not done in time`);
    break;
  }
  if (await attempt(test)) passed += 1;
  // A browser stumbles now and then, a fault of the page comes again: only what fails twice has failed.
  else if (await attempt(test)) {
    passed += 1;
    flaky.push(test.name);
  } else failed.push(test.name);
}

await browser.close();
rmSync(scratch, { recursive: true, force: true });
for (const name of flaky) console.log(`flaky: ${kind}: ${name}`);
for (const name of failed) console.log(`broken: ${kind}: ${name}`);
console.log(`${passed} passed, ${failed.length} failed`);
process.exit(failed.length === 0 ? 0 : 1);
