// Starts the page: the WebAssembly module, checked against the hash in this document, and the offline copy.
// A chosen theme is set before anything is drawn; without one the system decides.
try {
  const theme = localStorage.getItem("headroom.theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // Storage is refused: the system decides.
}

const show = (id) => document.getElementById(id)?.removeAttribute("hidden");
const at = (path) => new URL(path, document.baseURI);

const { js, wasm, integrity, later, laterIntegrity } = document.querySelector("script[data-wasm]").dataset;

// A trap ends the module, and without memory no code of its own can say so: what stands on the screen answers nothing any more.
const ended = ({ error, reason }) => {
  if (!((error ?? reason) instanceof WebAssembly.RuntimeError)) return;
  document.documentElement.dataset.ended = "";
  show("crashed");
};
addEventListener("error", ended);
addEventListener("unhandledrejection", ended);

// The module's second part is requested when the first answer is painted; code that needs it waits for this.
let secondPart;
globalThis.whole = new Promise((done) => (secondPart = done));

/** The second part, ready to be linked. */
async function secondModule() {
  const answer = await fetch(at(later), { integrity: laterIntegrity });
  return WebAssembly.compile(await answer.arrayBuffer());
}

/** The text of a catalogue model's recorded graph. */
globalThis.recordedGraph = async (id) => {
  const answer = await fetch(at(`graphs/${id}.json.gz`));
  if (!answer.ok) throw new Error(`graphs/${id}: ${answer.status}`);
  const bytes = new Uint8Array(await answer.arrayBuffer());
  const stream = new Blob([bytes]).stream();
  // Some hosts decompress the file.
  const packed = bytes[0] === 0x1f && bytes[1] === 0x8b;
  return new Response(packed ? stream.pipeThrough(new DecompressionStream("gzip")) : stream).text();
};

async function start() {
  const fetched = () => fetch(at(wasm), { integrity });
  // An offline page loads the second part before the start: an early call would request it synchronously, and a synchronous
  // request does not reach the service worker's copy.
  const kept = later && navigator.serviceWorker?.controller && secondModule().catch(() => undefined);
  // The module compiles while its script loads; with a wrong MIME type from the host it cannot be compiled while streaming.
  const compiled = WebAssembly.compileStreaming(fetched()).catch(() => undefined);
  const page = await import(at(js).href);
  const second = await kept;
  if (second) page.provideLater(second);
  await page.default({ module_or_path: (await compiled) ?? fetched() });
  document.documentElement.dataset.started = "";
  secondPart(later && (await finish(page, second)));
}

async function finish(page, second) {
  await painted();
  const module = second ?? (await secondModule());
  page.provideLater(module);
  await page.joinLater();
  return module;
}

/** Resolves once the page has been painted, if it is visible. */
const painted = () =>
  new Promise((done) => {
    if (document.hidden) return done();
    requestAnimationFrame(() => setTimeout(done));
  });

// The old version stays complete until the user accepts the new one: a waiting worker takes over only when told to.
async function keepOffline() {
  const workers = navigator.serviceWorker;
  if (!workers) return;
  const registration = await workers.register(at("sw.js"), { updateViaCache: "none" });
  let accepted = false;
  const offer = (worker) => {
    show("update-notice");
    document.getElementById("update-accept")?.addEventListener("click", () => {
      accepted = true;
      worker.postMessage("take-over");
    });
  };
  const watch = (worker, first) =>
    worker.addEventListener("statechange", () => {
      if (worker.state === "installed" && !first) offer(worker);
      if (worker.state !== "activated" || !first) return;
      show("offline-notice");
      setTimeout(() => document.getElementById("offline-notice")?.setAttribute("hidden", ""), 6_000);
    });
  // Files requested before the worker was active are not in its cache yet.
  const graphs = () => performance.getEntriesByType("resource").filter(({ name }) => name.includes("/graphs/"));
  const again = () => graphs().forEach(({ name }) => fetch(name).catch(() => undefined));
  workers.addEventListener("controllerchange", () => (accepted ? location.reload() : again()));
  if (registration.waiting && registration.active) offer(registration.waiting);
  if (registration.installing) watch(registration.installing, !registration.active);
  registration.addEventListener("updatefound", () => watch(registration.installing, !registration.active));
}

// The offline copy is made after the start, even a failed one, since a later build may work. Without storage (a private window,
// a policy) there is just no copy.
const soon = window.requestIdleCallback ?? setTimeout;
const keep = () => keepOffline().catch((problem) => console.warn("no offline copy:", problem));
start()
  .catch((problem) => {
    console.error(problem);
    show("failed");
  })
  .then(() => soon(keep));
