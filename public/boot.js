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

async function start() {
  const { js, wasm } = document.querySelector("script[data-wasm]").dataset;
  // Browsers ignore the integrity of a preload, so the request that is used must carry the hash itself.
  const { integrity } = document.querySelector("link[rel=preload][as=fetch]");
  const fetched = () => fetch(at(wasm), { integrity });
  // The module is made ready while the script beside it is read. A host that gives it a wrong type costs that head start.
  const compiled = WebAssembly.compileStreaming(fetched()).catch(() => undefined);
  const { default: init } = await import(at(js).href);
  await init({ module_or_path: (await compiled) ?? fetched() });
  document.documentElement.dataset.started = "";
}

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
  workers.addEventListener("controllerchange", () => accepted && location.reload());
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
