// Trunk's post-build hook. In a release it makes one style sheet of all, splits the module in two, lists the built files in
// the service worker, under a version that is their hash, and writes the content security policy into the page. A debug
// build gets a worker that removes itself, and no policy: Trunk's reload script is inline.
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, relative, sep } from "node:path";
import { rehearse } from "./rehearse.mjs";
import { counted, split } from "./split.mjs";

const POLICY = [
  "default-src 'none'",
  "script-src 'self' 'wasm-unsafe-eval'",
  "style-src 'self'",
  "img-src 'self' data: blob:",
  "connect-src 'self'",
  "manifest-src 'self'",
  "worker-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
].join("; ");

const GOODBYE = `// Development builds keep no offline copy.
self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", () => self.registration.unregister());
`;

const { TRUNK_STAGING_DIR: staging, TRUNK_PROFILE: profile } = process.env;
if (!staging) throw new Error("TRUNK_STAGING_DIR: expected Trunk to call this hook");
const worker = join(staging, "sw.js");

// A pattern that no longer matches must stop the build, not ship a page without its policy.
const replaceOnce = (text, from, to) => {
  if (text.split(from).length !== 2) throw new Error(`expected exactly one ${from}`);
  return text.replace(from, () => to);
};

/** One request instead of a dozen, and smaller, for sheets repeat each other's words. They are read in the page's order. */
const withOneSheet = (html) => {
  const links = [...html.matchAll(/[ \t]*<link rel="stylesheet" href="\.\/([\w.-]+\.css)"[^>]*>\n?/g)];
  if (links.length < 2) throw new Error("index.html: expected the links of several style sheets");
  const sheet = links.map(([, name]) => readFileSync(join(staging, name), "utf8")).join("\n");
  for (const [, name] of links) rmSync(join(staging, name));
  const name = `page-${hashed(sheet)}.css`;
  writeFileSync(join(staging, name), sheet);
  const link = `    <link rel="stylesheet" href="./${name}" integrity="${integrityOf(sheet)}" />\n`;
  return links.reduce((text, [tag], at) => replaceOnce(text, tag, at === 0 ? link : ""), html);
};

/** What is answered before the second module is there: a first visit, and links to what people train most. */
const FIRST = [
  "",
  "#v=1&model=llama-3.1-8b&precision=bf16&lora=on&accum=16",
  "#v=1&model=qwen2.5-7b&precision=amp-bf16&ckpt=layers&optim=adamw&mb=2",
  "#v=1&model=nonsense&gpu=nonsense&mb=x",
];

const hashed = (bytes) => createHash("sha256").update(bytes).digest("hex").slice(0, 16);
const integrityOf = (bytes) => `sha384-${createHash("sha384").update(bytes).digest("base64")}`;

/** Replaces a built file by one of another name. */
const replaceFile = (before, after, contents) => {
  rmSync(join(staging, before));
  writeFileSync(join(staging, after), contents);
};

/** Two modules instead of one: what a first answer runs, and the rest. */
const withTwoModules = async (html) => {
  const [, script, module] = /data-js="\.\/([\w.-]+)" data-wasm="\.\/([\w.-]+)"/.exec(html) ?? [];
  const bytes = readFileSync(join(staging, module));
  let code = readFileSync(join(staging, script), "utf8");
  const soon = await rehearse(counted(bytes), code, FIRST);
  const build = hashed(bytes);
  const { first, later } = split(bytes, soon, build);
  const [firstName, laterName] = [`headroom-${hashed(first)}.wasm`, `headroom-later-${hashed(later)}.wasm`];
  code = replaceOnce(code, "__proto__: null,\n        \"./", "__proto__: null,\n        later: { load: loadLater },\n        \"./");
  const joint = readFileSync(new URL("later.js", import.meta.url), "utf8");
  code += `\nconst BUILD = "${build}";\nconst LATER = "./${laterName}";\n${joint}`;
  const codeName = `headroom-${hashed(code)}.js`;
  replaceFile(module, firstName, first);
  writeFileSync(join(staging, laterName), later);
  replaceFile(script, codeName, code);

  // Trunk's own preloads are of what was there before. Browsers take no integrity for a preload that is fetched, and warn.
  let text = html.replace(/<link rel="(module)?preload"[^>]*>/g, "");
  text = replaceOnce(text, `data-js="./${script}" data-wasm="./${module}"`, [
    `data-js="./${codeName}" data-wasm="./${firstName}" data-integrity="${integrityOf(first)}"`,
    `data-later="./${laterName}" data-later-integrity="${integrityOf(later)}"`,
  ].join(" "));
  const preloads = [
    `<link rel="modulepreload" href="./${codeName}" crossorigin="anonymous" integrity="${integrityOf(code)}" />`,
    `<link rel="preload" href="./${firstName}" as="fetch" type="application/wasm" crossorigin="anonymous" />`,
  ];
  return replaceOnce(text, "</head>", `  ${preloads.join("\n    ")}\n  </head>`);
};

if (profile === "release") {
  const page = join(staging, "index.html");
  const meta = `<meta http-equiv="Content-Security-Policy" content="${POLICY}" />`;
  const charset = '<meta charset="utf-8" />';
  const html = await withTwoModules(withOneSheet(readFileSync(page, "utf8")));
  writeFileSync(page, replaceOnce(html, charset, `${charset}\n    ${meta}`));

  const files = readdirSync(staging, { recursive: true, withFileTypes: true })
    .filter((it) => it.isFile())
    .map((it) => relative(staging, join(it.parentPath ?? it.path, it.name)).split(sep).join("/"))
    .filter((it) => it !== "sw.js")
    .sort();
  const hash = createHash("sha256");
  for (const file of files) hash.update(file).update("\0").update(readFileSync(join(staging, file)));
  const version = hash.digest("hex").slice(0, 16);
  // The page itself is kept under the address people open.
  // Recorded graphs come when they are asked for.
  const addresses = files.filter((it) => !it.startsWith("graphs/")).map((it) => (it === "index.html" ? "./" : it));
  let text = readFileSync(worker, "utf8");
  text = replaceOnce(text, 'const VERSION = "";', `const VERSION = ${JSON.stringify(version)};`);
  text = replaceOnce(text, "const FILES = [];", `const FILES = ${JSON.stringify(addresses)};`);
  writeFileSync(worker, text);
} else {
  writeFileSync(worker, GOODBYE);
}
