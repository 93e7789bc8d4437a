// Joined to the end of wasm-bindgen's script, where the module is split in two (scripts/split.mjs): `wasm` is what the first
// module exports, LATER where the second lies, BUILD the name that both share.

/** The second module, where somebody has provided it. */
let provided;

export const provideLater = (module) => (provided = module);

/** Joins the second module to the first, off the page's thread where it can. */
export async function joinLater() {
  await WebAssembly.instantiate(provided, { [BUILD]: wasm });
  wasm.joined.value = 1;
}

/** The first module calls this where it needs the second at once: the call cannot wait for a promise. */
function loadLater() {
  new WebAssembly.Instance(provided ?? new WebAssembly.Module(fetchedNow()), { [BUILD]: wasm });
  wasm.joined.value = 1;
}

function fetchedNow() {
  const request = new XMLHttpRequest();
  request.open("GET", new URL(LATER, import.meta.url), false);
  // A page's own thread gets no bytes this way, but it gets text that stands for them.
  request.overrideMimeType("text/plain; charset=x-user-defined");
  request.send();
  return Uint8Array.from(request.responseText, (letter) => letter.charCodeAt(0));
}
