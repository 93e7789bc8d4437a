// Long work away from the page's thread: starts the same module again, from what the page hands over,
// which is two parts in a release.
self.addEventListener(
  "message",
  async ({ data }) => {
    const page = await import(data.js);
    // Before the start, for requests may follow it at once.
    if (data.later) page.bringLater(data.later);
    await page.default({ module_or_path: data.module });
  },
  { once: true },
);
