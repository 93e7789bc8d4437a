// A static file server for this machine alone: what any host of dist/ does, compression included, and no more.
//   node scripts/static.mjs FOLDER PORT
import { createReadStream, readdirSync, statSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { extname, join, normalize, resolve, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { brotliCompress } from "node:zlib";

const compress = promisify(brotliCompress);

const TYPES = {
  ".css": "text/css; charset=utf-8",
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".json": "application/json",
  ".png": "image/png",
  ".svg": "image/svg+xml",
  ".txt": "text/plain; charset=utf-8",
  ".wasm": "application/wasm",
  ".webmanifest": "application/manifest+json",
};

/**
 * Serves a folder below a path. Port 0 takes any free port.
 * @returns {Promise<{url: string, requests: string[], folder: string, close: () => Promise<void>}>}
 *   `requests` grows with each request; `folder` may be set to serve another one from then on.
 */
export async function serve(folder, port, path = "/") {
  const site = { folder, requests: [] };
  const server = createServer((request, response) => {
    // A path as it was sent: `//` alone is no URL.
    const [pathname] = request.url.split(/[?#]/);
    site.requests.push(pathname);
    const file = find(resolve(site.folder), path, pathname);
    if (!file) return response.writeHead(404, { "content-type": "text/plain" }).end("not found\n");
    const type = TYPES[extname(file)] ?? "application/octet-stream";
    const headers = {
      "content-type": type,
      "cache-control": "no-cache",
      "content-security-policy": "frame-ancestors 'none'",
      "x-content-type-options": "nosniff",
      vary: "accept-encoding",
    };
    // A debug build's module would be compressed for minutes.
    const packs = !type.endsWith("png") && statSync(file).size < 8e6 && /\bbr\b/.test(request.headers["accept-encoding"] ?? "");
    if (packs && request.method === "GET") {
      packed(file)
        .then((body) => response.writeHead(200, { ...headers, "content-encoding": "br", "content-length": body.length }).end(body))
        .catch(() => response.destroy());
      return;
    }
    response.writeHead(200, headers);
    if (request.method === "HEAD") return response.end();
    createReadStream(file).on("error", () => response.destroy()).pipe(response);
  });
  await new Promise((done, failed) => server.once("error", failed).listen(port, "127.0.0.1", done));
  site.url = `http://127.0.0.1:${server.address().port}${path}`;
  site.close = () => {
    server.closeAllConnections();
    return new Promise((done) => server.close(done));
  };
  return site;
}

/** Compressed files by name and time: each is compressed once, as a host does when it is uploaded. */
const kept = new Map();

function packed(file) {
  const key = `${file} ${statSync(file).mtimeMs}`;
  if (!kept.has(key)) kept.set(key, readFile(file).then((bytes) => compress(bytes)));
  return kept.get(key);
}

/** Compresses a folder's files before the first visitor asks for them. */
export async function warm(folder) {
  const files = readdirSync(folder, { withFileTypes: true }).filter((it) => it.isFile() && !it.name.endsWith(".png"));
  await Promise.all(files.map((it) => packed(join(resolve(folder), it.name))));
}

function find(root, path, pathname) {
  if (!pathname.startsWith(path)) return undefined;
  try {
    const name = decodeURIComponent(pathname.slice(path.length));
    const file = normalize(join(root, name === "" || name.endsWith("/") ? `${name}index.html` : name));
    if (!file.startsWith(root + sep)) return undefined;
    return statSync(file, { throwIfNoEntry: false })?.isFile() ? file : undefined;
  } catch {
    // No text, a zero in it, or a file used as a folder.
    return undefined;
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [folder, port] = process.argv.slice(2);
  try {
    await warm(folder);
    const { url } = await serve(folder, Number(port));
    console.log(`Headroom is at ${url} (Ctrl+C stops it)`);
  } catch (problem) {
    const busy = problem.code === "EADDRINUSE";
    console.error(busy ? `port ${port} is in use; choose another: PORT=8081 ./scripts/serve` : problem.message);
    process.exit(1);
  }
}
