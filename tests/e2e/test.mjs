// What the tests have in common: their list, the command line to compare with, and a few gestures.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import axe from "axe-core";

export const tests = [];
/** `only` names the one browser that it is for, `limit` how many milliseconds it may take where that is more than usual. */
export const test = (name, run, only, limit) => tests.push({ name, run, only, limit });

/** The command line over the same library; it ends with 1 where the answer is "does not fit". */
export const headroom = (args, input) => {
  try {
    return execFileSync(process.env.HEADROOM, args, { input, encoding: "utf8" });
  } catch (problem) {
    if (problem.status === 1) return problem.stdout;
    throw problem;
  }
};
export const allocated = (yaml) => JSON.parse(headroom(["estimate", "-", "--json"], yaml)).allocated.expected;

/** Opens a folded panel. */
export const unfold = (visit, panel) => visit.at(`[data-testid="${panel}"] details, details[data-testid="${panel}"]`, (it) => void (it.open = true));
export const undo = (visit) => visit.press(".tools button", "Undo");

/** A small generator, so that a failure can be run again. */
export const dice = (seed) => {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
};

/** axe finds nothing to mend, once all is computed and what was drawn has come to rest: what is stale or fading is pale. */
export async function accessible(visit, scheme) {
  await visit.page.waitForFunction(() => !document.querySelector('#app :is([aria-busy="true"], .stale)'));
  // In what is folded away Firefox never ends one.
  await visit.page.waitForFunction(() => !document.getAnimations().some((it) => it.effect.target.checkVisibility()));
  await visit.page.evaluate(axe.source);
  const found = await visit.page.evaluate(() => axe.run(document));
  const told = found.violations.map((it) => `${scheme} ${it.id}: ${it.help}\n  ${it.nodes.map((node) => node.html).join("\n  ")}`);
  assert.deepEqual(told, []);
}
