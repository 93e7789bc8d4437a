// How fast the page is, printed: node figures.mjs chrome|firefox EXECUTABLE [FOLDER OF A RELEASE BUILD]
// A quiet machine is part of the measure, so these are figures to read and no test.
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { serve, warm } from "../../scripts/static.mjs";
import { launch, Visit } from "./browser.mjs";

const [kind, executable, folder = new URL("../../dist", import.meta.url).pathname] = process.argv.slice(2);
const EDITS = 100;
const VISITS = 5;

const sorted = (all) => [...all].sort((a, b) => a - b);
const part = (all, share) => sorted(all)[Math.min(all.length - 1, Math.floor(all.length * share))];
const say = (what, all, target) =>
  console.log(
    `${what}: median ${part(all, 0.5).toFixed(1)} ms, p95 ${part(all, 0.95).toFixed(1)} ms, most ${Math.max(...all).toFixed(1)} ms, of ${all.length} (target ${target})`,
  );

/** Notes when the first answer has been painted, and every task that holds the page for more than 50 ms. */
const watch = (page) =>
  page.evaluateOnNewDocument(() => {
    window.longTasks = [];
    if (window.PerformanceObserver?.supportedEntryTypes.includes("longtask")) {
      new PerformanceObserver((list) => window.longTasks.push(...list.getEntries().map((it) => [it.startTime, it.duration]))).observe({ entryTypes: ["longtask"] });
    }
    const look = new MutationObserver(() => {
      if (!document.querySelector("#verdict")?.innerText) return;
      look.disconnect();
      requestAnimationFrame(() => {
        const { port1, port2 } = new MessageChannel();
        port1.onmessage = () => (window.firstAnswer = performance.now());
        port2.postMessage(0);
      });
    });
    look.observe(document, { childList: true, subtree: true, characterData: true });
  });

await warm(folder);
const browser = await launch(kind, executable);
const visitors = async (each) => {
  const site = await serve(folder, 0, "/some/where/");
  const visit = await Visit.begin(browser, site, mkdtempSync(join(tmpdir(), "headroom-figures-")));
  await watch(visit.page);
  try {
    await each(visit);
  } finally {
    await visit.end();
    await site.close();
  }
};
const firstAnswer = async (visit) => {
  await visit.page.waitForFunction(() => window.firstAnswer);
  return visit.page.evaluate(() => window.firstAnswer);
};
const rest = (ms) => new Promise((done) => setTimeout(done, ms));

const [cold, kept, tasks] = [[], [], []];
for (let at = 0; at < VISITS; at += 1) {
  await visitors(async (visit) => {
    await visit.open();
    cold.push(await firstAnswer(visit));
    await visit.kept();
    await rest(1500);
    const first = cold.at(-1);
    const long = await visit.page.evaluate((first) => window.longTasks.filter(([start]) => start > first).map(([, length]) => length), first);
    tasks.push(Math.max(0, ...long));
    await visit.reload();
    kept.push(await firstAnswer(visit));
  });
}
say("first answer painted, cold, from this machine", cold, "300");
say("first answer painted, from the service worker", kept, "150");
say("longest task after the first answer (0: none over 50 ms)", tasks, "50");

/** A line as slow as somebody's: bits of a second, and milliseconds of latency. */
const lines = [
  ["first answer at 9 Mbit/s and 60 ms", 9, 60, 1, "1000"],
  ["first answer at 1.6 Mbit/s and 150 ms, CPU × 4", 1.6, 150, 4, "4000"],
];
for (const [what, megabits, latency, slower, target] of kind === "chrome" ? lines : []) {
  const all = [];
  for (let at = 0; at < 3; at += 1) {
    await visitors(async (visit) => {
      const devtools = await visit.page.createCDPSession();
      await devtools.send("Network.enable");
      const throughput = (megabits * 1e6) / 8;
      await devtools.send("Network.emulateNetworkConditions", { offline: false, latency, downloadThroughput: throughput, uploadThroughput: throughput });
      await devtools.send("Emulation.setCPUThrottlingRate", { rate: slower });
      await visit.page.goto(visit.site.url, { waitUntil: "load" });
      all.push(await firstAnswer(visit));
    });
  }
  say(what, all, target);
}

const edits = async (what, fragment, target) =>
  visitors(async (visit) => {
    await visit.open(visit.site.url + fragment);
    // What is worked out in the background after the page has opened is over.
    await rest(3000);
    const times = await visit.page.evaluate(async (edits) => {
      const field = document.querySelector('[name="data.micro_batch"]');
      const bytes = document.querySelector(".three");
      const after = (wait) => new Promise((done) => wait(done));
      const [answered, painted] = [[], []];
      for (let at = 0; at < edits; at += 1) {
        const changed = after((done) => {
          const look = new MutationObserver(() => (look.disconnect(), done()));
          look.observe(bytes, { childList: true, subtree: true, characterData: true, attributes: true });
        });
        const start = performance.now();
        field.value = String(2 + (at % 8));
        field.dispatchEvent(new Event("input", { bubbles: true }));
        await changed;
        answered.push(performance.now() - start);
        // A message that is posted in a frame arrives when the frame has been painted.
        await after((done) =>
          requestAnimationFrame(() => {
            const { port1, port2 } = new MessageChannel();
            port1.onmessage = done;
            port2.postMessage(0);
          }),
        );
        painted.push(performance.now() - start);
        // A person's next key comes later, and not in step with the frames.
        await after((done) => setTimeout(done, 130 + ((at * 7) % 13)));
      }
      return { answered, painted };
    }, EDITS);
    say(`${what}, from input to the answer in the document`, times.answered, target);
    say(`${what}, from input to the painted frame`, times.painted, "a frame more");
  });
const EDITED = [
  ["GPT-2", "#v=1", "8"],
  ["Llama-8B, accumulation 16", "#v=1&model=llama-3.1-8b&gpu=h100-sxm5-80gb&precision=bf16&lora=on&mb=1&seq=2048&accum=16", "16"],
  ["Llama-405B, a pipeline of 8 stages", "#v=1&model=llama-3.1-405b&gpu=h100-sxm5-80gb&gpus=512&nodes=64&par=fsdp2&tp=8&pp=8&mb=1&seq=8192&accum=16&precision=bf16", "100"],
];
for (const [what, fragment, target] of EDITED) await edits(what, fragment, target);

/** What an edit costs the page's thread in CPU time, which other programs on the machine do not change. */
const work = async (what, fragment, target) =>
  visitors(async (visit) => {
    await visit.open(visit.site.url + fragment);
    await visit.page.waitForSelector('[data-testid="plans-strip"] [aria-busy=false]');
    await rest(2000);
    const devtools = await visit.page.createCDPSession();
    await devtools.send("Performance.enable", { timeDomain: "threadTicks" });
    const scripts = async () => 1000 * (await devtools.send("Performance.getMetrics")).metrics.find((it) => it.name === "ScriptDuration").value;
    const times = [];
    for (let at = 0; at < 12; at += 1) {
      const before = await scripts();
      await visit.page.evaluate((value) => {
        const field = document.querySelector('[name="data.micro_batch"]');
        field.value = value;
        field.dispatchEvent(new Event("input", { bubbles: true }));
      }, String(2 + (at % 8)));
      times.push((await scripts()) - before);
      await rest(400);
    }
    say(`${what}, CPU time from input to the answer`, times, target);
  });
if (kind === "chrome") for (const [what, fragment, target] of EDITED) await work(what, fragment, target);

// What moves without being touched, from the opening until all panels are full.
for (const [width, height] of kind === "chrome" ? [[1280, 900], [360, 740]] : []) {
  await visitors(async (visit) => {
    await visit.page.setViewport({ width, height });
    await visit.page.evaluateOnNewDocument(() => {
      window.shift = 0;
      new PerformanceObserver((list) => {
        for (const it of list.getEntries()) if (!it.hadRecentInput) window.shift += it.value;
      }).observe({ type: "layout-shift", buffered: true });
    });
    await visit.open();
    await visit.page.waitForSelector('[data-testid="planner"] > .advice[aria-busy=false]');
    await rest(1000);
    console.log(`layout shift at ${width} px: ${(await visit.page.evaluate(() => window.shift)).toFixed(4)} (target 0.05)`);
  });
}

await visitors(async (visit) => {
  await visit.open();
  await rest(2000);
  const times = await visit.page.evaluate(async () => {
    const select = document.querySelector("#preset");
    const about = document.querySelector(".about");
    const times = [];
    for (const { value } of [...select.options].filter((it) => !it.disabled)) {
      const before = about.textContent;
      const start = performance.now();
      select.value = value;
      select.dispatchEvent(new Event("change", { bubbles: true }));
      while (about.textContent === before && performance.now() - start < 200) {
        await new Promise((next) => {
          const { port1, port2 } = new MessageChannel();
          port1.onmessage = next;
          port2.postMessage(0);
        });
      }
      times.push(performance.now() - start);
      await new Promise((done) => setTimeout(done, 300));
    }
    return times.slice(1);
  });
  say("preset switch", times, "100 at most");
});

await visitors(async (visit) => {
  await visit.open(`${visit.site.url}#v=1&model=llama-3.1-8b&gpu=h100-sxm5-80gb&precision=bf16&lora=on&mb=1&seq=2048`);
  await rest(3000);
  const frames = await visit.page.evaluate(async () => {
    const panel = document.querySelector('[data-testid="cards"]');
    panel.open = true;
    const frames = [];
    let last = performance.now();
    const end = last + 15_000;
    await new Promise((done) => {
      const frame = (now) => {
        frames.push(now - last);
        last = now;
        const over = panel.querySelector('[aria-busy="false"] tbody tr') && frames.length > 120;
        if (over || now > end) done();
        else requestAnimationFrame(frame);
      };
      requestAnimationFrame(frame);
    });
    return frames.slice(1);
  });
  say("frames while the worker plans", frames, "50");
});
await browser.close();
