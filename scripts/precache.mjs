// Trunk's post-build hook. In a release it makes one style sheet of all, lists the built files in the service worker, under
// a version that is their hash, and writes the content security policy into the page. A debug build gets a worker that
// removes itself, and no policy: Trunk's reload script is inline.
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, relative, sep } from "node:path";

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
  const name = `page-${createHash("sha256").update(sheet).digest("hex").slice(0, 16)}.css`;
  writeFileSync(join(staging, name), sheet);
  const integrity = `sha384-${createHash("sha384").update(sheet).digest("base64")}`;
  const link = `    <link rel="stylesheet" href="./${name}" integrity="${integrity}" />\n`;
  return links.reduce((text, [tag], at) => replaceOnce(text, tag, at === 0 ? link : ""), html);
};

if (profile === "release") {
  const page = join(staging, "index.html");
  const meta = `<meta http-equiv="Content-Security-Policy" content="${POLICY}" />`;
  const charset = '<meta charset="utf-8" />';
  const html = withOneSheet(readFileSync(page, "utf8"));
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
  const addresses = files.map((it) => (it === "index.html" ? "./" : it));
  let text = readFileSync(worker, "utf8");
  text = replaceOnce(text, 'const VERSION = "";', `const VERSION = ${JSON.stringify(version)};`);
  text = replaceOnce(text, "const FILES = [];", `const FILES = ${JSON.stringify(addresses)};`);
  writeFileSync(worker, text);
} else {
  writeFileSync(worker, GOODBYE);
}
