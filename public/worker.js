// Long work away from the page's thread: starts the same module again, from what the page hands over,
// which is two parts in a release.
self.addEventListener(
  "message",
  ({ data }) =>
    start(data).catch((problem) =>
      // Out of the promise, so that the page hears of it and does the work itself.
      setTimeout(() => {
        throw problem;
      }),
    ),
  { once: true },
);

async function start({ js, module, later }) {
  const page = await import(js);
  // Before the start, for requests may follow it at once.
  if (later) page.bringLater(later);
  await page.default({ module_or_path: module });
}
