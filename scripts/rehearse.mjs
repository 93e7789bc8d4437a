// Which functions of the page's module a first answer runs: starts the page here, in a document that is drawn nowhere.
import { writeFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Worker, isMainThread, parentPort, workerData } from "node:worker_threads";
import { fileURLToPath, pathToFileURL } from "node:url";
import { MARK } from "./split.mjs";

/** As much of a document as the page writes to before it has answered. */
class Part extends EventTarget {
  childNodes = [];
  parentNode = null;
  attributes = new Map();
  classList = { add() {}, remove() {} };
  style = { setProperty() {}, removeProperty() {} };
  dataset = {};
  constructor(tagName = "", nodeValue = "") {
    super();
    Object.assign(this, { tagName, nodeValue });
    if (tagName === "TEMPLATE") this.content = new Part();
  }
  get nextSibling() {
    const all = this.parentNode?.childNodes ?? [];
    return all[all.indexOf(this) + 1] ?? null;
  }
  get firstChild() {
    return this.childNodes[0] ?? null;
  }
  get firstElementChild() {
    return this.childNodes.find((part) => part.tagName) ?? null;
  }
  insertBefore(part, before) {
    part.remove();
    part.parentNode = this;
    this.childNodes.splice(before ? this.childNodes.indexOf(before) : this.childNodes.length, 0, part);
    return part;
  }
  appendChild(part) {
    return this.insertBefore(part, null);
  }
  append(...parts) {
    parts.forEach((part) => this.appendChild(part));
  }
  before(...parts) {
    parts.forEach((part) => this.parentNode.insertBefore(part, this));
  }
  remove() {
    const all = this.parentNode?.childNodes ?? [];
    if (all.includes(this)) all.splice(all.indexOf(this), 1);
    this.parentNode = null;
  }
  removeChild(part) {
    part.remove();
    return part;
  }
  cloneNode(deep) {
    const copy = new Part(this.tagName, this.nodeValue);
    copy.attributes = new Map(this.attributes);
    if (deep) copy.append(...this.childNodes.map((part) => part.cloneNode(true)));
    return copy;
  }
  setAttribute(name, value) {
    this.attributes.set(name, value);
  }
  getAttribute(name) {
    return this.attributes.get(name) ?? null;
  }
  hasAttribute(name) {
    return this.attributes.has(name);
  }
  removeAttribute(name) {
    this.attributes.delete(name);
  }
  getBoundingClientRect() {
    return { top: 0, left: 0, width: 0, height: 0 };
  }
  querySelector() {
    return null;
  }
  focus() {}
}

/** The globals that the page reads. */
function pretend(fragment) {
  const app = new Part("MAIN");
  const script = new Part("SCRIPT");
  script.setAttribute("data-js", "page.js");
  const document = Object.assign(new Part(), {
    body: new Part("BODY"),
    head: new Part("HEAD"),
    documentElement: new Part("HTML"),
    baseURI: "http://localhost/",
    hidden: false,
    title: "",
    createElement: (name) => new Part(name.toUpperCase()),
    createElementNS: (_, name) => new Part(name),
    createTextNode: (text) => new Part("", text),
    createComment: (text) => new Part("", text),
    createDocumentFragment: () => new Part(),
    getElementById: (id) => (id === "app" ? app : null),
    querySelector: () => script,
  });
  const nothing = { getItem: () => null, setItem() {} };
  const window = Object.assign(new EventTarget(), {
    document,
    location: { hash: fragment, href: `http://localhost/${fragment}` },
    history: { replaceState() {} },
    localStorage: nothing,
    sessionStorage: nothing,
    innerWidth: 1280,
    innerHeight: 900,
    navigator: {},
    // Nobody waits for a pause of hands or voices here.
    setTimeout: (ring) => (setTimeout(ring), 1),
    clearTimeout() {},
    requestAnimationFrame: (draw) => (setTimeout(draw), 1),
    queueMicrotask,
  });
  const is = (name, test) => (globalThis[name] = class { static [Symbol.hasInstance](value) { return test(value); } });
  is("Window", (value) => value === window);
  is("DedicatedWorkerGlobalScope", () => false);
  is("ShadowRoot", () => false);
  for (const name of ["Node", "Element", "HTMLElement"]) is(name, (value) => value instanceof Part);
  for (const name of ["Input", "Select", "TextArea", "Anchor", "Canvas"]) {
    is(`HTML${name}Element`, (value) => value instanceof Part && value.tagName === name.toUpperCase());
  }
  // The second module never comes: the rehearsal ends where the page waits for it.
  window.whole = new Promise(() => {});
  Object.assign(globalThis, { window, document, self: window, whole: window.whole });
  return app;
}

/**
 * The numbers of the functions that a counted module runs to answer these fragments.
 * @returns {Promise<Set<number>>}
 */
export async function rehearse(module, script, fragments) {
  const folder = mkdtempSync(join(tmpdir(), "headroom-rehearsal-"));
  const copy = join(folder, "page.mjs");
  writeFileSync(copy, script);
  const ran = new Set();
  try {
    for (const fragment of fragments) {
      const data = { module, copy: pathToFileURL(copy).href, fragment };
      const found = await new Promise((done, failed) => {
        const worker = new Worker(fileURLToPath(import.meta.url), { workerData: data });
        worker.once("message", done);
        worker.once("error", failed);
      });
      found.forEach((at) => ran.add(at));
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  return ran;
}

/** One rehearsal, in a thread of its own: a module starts once. */
async function one({ module, copy, fragment }) {
  const app = pretend(fragment);
  const { initSync } = await import(copy);
  const exports = initSync({ module });
  // What follows the first drawing, until the page waits for the second module.
  await new Promise((done) => setTimeout(done, 200));
  if (!app.firstChild) throw new Error(`${fragment}: the page stays empty`);
  const ran = [];
  for (const [name, { value }] of Object.entries(exports)) {
    if (name.startsWith(MARK) && value === 1) ran.push(Number(name.slice(MARK.length)));
  }
  parentPort.postMessage(ran);
}

if (!isMainThread && workerData?.copy) await one(workerData);
