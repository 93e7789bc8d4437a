// Long work away from the page's thread: starts the same module again, from what the page hands over.
self.addEventListener(
  "message",
  async ({ data }) => {
    const { default: init } = await import(data.js);
    await init({ module_or_path: data.module });
  },
  { once: true },
);
