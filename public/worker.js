// Long work off the page's thread: starts the same module again from the parts that the page sends (two in a release).
self.addEventListener(
  "message",
  ({ data }) =>
    start(data).catch((problem) =>
      // Thrown outside the promise, so that the page gets an error event and does the work itself.
      setTimeout(() => {
        throw problem;
      }),
    ),
  { once: true },
);

async function start({ js, module, later }) {
  const page = await import(js);
  // Before the start, because requests may follow immediately.
  if (later) page.provideLater(later);
  await page.default({ module_or_path: module });
}
