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

// The module's second part is asked for when the first answer is painted. What needs it waits for this.
let secondPart;
globalThis.whole = new Promise((done) => (secondPart = done));

/** The second part, ready to be joined. */
async function secondModule() {
  const answer = await fetch(at(later), { integrity: laterIntegrity });
  return WebAssembly.compile(await answer.arrayBuffer());
}

/** The recorded graph of one of the catalogue's models, as text. */
globalThis.recordedGraph = async (id) => {
  const answer = await fetch(at(`graphs/${id}.json.gz`));
  if (!answer.ok) throw new Error(`graphs/${id}: ${answer.status}`);
  const bytes = new Uint8Array(await answer.arrayBuffer());
  const stream = new Blob([bytes]).stream();
  // Some hosts unpack what they send.
  const packed = bytes[0] === 0x1f && bytes[1] === 0x8b;
  return new Response(packed ? stream.pipeThrough(new DecompressionStream("gzip")) : stream).text();
};

async function start() {
  const fetched = () => fetch(at(wasm), { integrity });
  // A page that is kept offline has the second part at hand. It is brought before the start: what is called early would ask
  // the network for it, since an answer that is waited for on the spot does not come from the offline copy.
  const kept = later && navigator.serviceWorker?.controller && secondModule().catch(() => undefined);
  // The module is made ready while the script beside it is read. A host that gives it a wrong type costs that head start.
  const compiled = WebAssembly.compileStreaming(fetched()).catch(() => undefined);
  const page = await import(at(js).href);
  const second = await kept;
  if (second) page.bringLater(second);
  await page.default({ module_or_path: (await compiled) ?? fetched() });
  document.documentElement.dataset.started = "";
  secondPart(later && (await finish(page, second)));
}

async function finish(page, second) {
  await painted();
  const module = second ?? (await secondModule());
  page.bringLater(module);
  await page.joinLater();
  return module;
}

/** What is drawn has been painted, where somebody looks at it. */
const painted = () =>
  new Promise((done) => {
    if (document.hidden) return done();
    requestAnimationFrame(() => setTimeout(done));
  });

// The old page stays whole until the person accepts the new one: a waiting worker takes over only when told.
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
      setTimeout(() => document.getElementById("offline-notice")?.setAttribute("hidden", ""), 20_000);
    });
  // What was asked for before the worker was there is not in its copy yet.
  const graphs = () => performance.getEntriesByType("resource").filter(({ name }) => name.includes("/graphs/"));
  const again = () => graphs().forEach(({ name }) => fetch(name).catch(() => undefined));
  workers.addEventListener("controllerchange", () => (accepted ? location.reload() : again()));
  if (registration.waiting && registration.active) offer(registration.waiting);
  if (registration.installing) watch(registration.installing, !registration.active);
  registration.addEventListener("updatefound", () => watch(registration.installing, !registration.active));
}

// The offline copy comes after the page, whether that started or not: a later build may. Refused storage (a private
// window, a policy) costs only the copy.
const soon = window.requestIdleCallback ?? setTimeout;
const keep = () => keepOffline().catch((problem) => console.warn("no offline copy:", problem));
start()
  .catch((problem) => {
    console.error(problem);
    show("failed");
  })
  .then(() => soon(keep));
