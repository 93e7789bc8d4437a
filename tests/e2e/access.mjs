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

test("whatever is pressed is at least 24 pixels high and wide", async ({ visit }) => {
  const { page } = visit;
  for (const [width, height] of [
    [1440, 900],
    [768, 900],
    [360, 740],
  ]) {
    await page.setViewport({ width, height });
    await visit.open(`${visit.site.url}#v=1&dims=layers=2,hidden=128,heads=2&seq=64`);
    await page.evaluate(() => document.querySelectorAll("details:not(.menu)").forEach((it) => (it.open = true)));
    await page.waitForSelector('[data-testid="cards"] [aria-busy=false] tbody tr');
    await page.waitForSelector('[data-testid="moves"] [aria-busy=false] tbody tr');
    const small = await page.evaluate(() => {
      const shows = (it) => it.checkVisibility({ visibilityProperty: true }) && it.getClientRects().length > 0;
      const all = [...document.querySelectorAll("#app :is(button, input:not([type=file]), select, textarea, summary, a[href])")].filter(shows);
      // A box is pressed by its label too.
      const target = (it) => (it.type === "checkbox" && it.closest("label")) || it;
      const size = (it) => target(it).getBoundingClientRect();
      return all.filter((it) => Math.min(size(it).width, size(it).height) < 24).map((it) => `${it.outerHTML.slice(0, 90)} ${size(it).width} × ${size(it).height}`);
    });
    assert.deepEqual(small, [], `at ${width}`);
  }
});
