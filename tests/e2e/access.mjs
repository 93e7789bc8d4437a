// Whoever looks, and on whatever: nothing that axe would mend, nothing that leaves the screen.
import assert from "node:assert/strict";
import { accessible, test } from "./test.mjs";

test("axe finds nothing to mend", async ({ visit }) => {
  await visit.open();
  await accessible(visit, "as opened");
  // Folded parts are parts of the page too.
  await visit.page.evaluate(() => document.querySelectorAll("details").forEach((it) => (it.open = true)));
  await accessible(visit, "unfolded");
});

test(
  "axe finds nothing to mend in the dark either",
  async ({ visit }) => {
    await visit.page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: "dark" }]);
    await visit.open();
    const colour = () => visit.page.evaluate(() => getComputedStyle(document.body).color);
    const dark = await colour();
    await accessible(visit, "dark");
    await visit.page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: "light" }]);
    assert.notEqual(await colour(), dark);
  },
  "chrome",
);

test("a narrow screen does not scroll sideways", async ({ visit }) => {
  await visit.page.setViewport({ width: 360, height: 740 });
  await visit.open();
  const [content, screen] = await visit.page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  assert.ok(content <= screen, `${content} px of content on ${screen} px of screen`);
});
