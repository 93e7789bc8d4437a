// Caches one complete build of the page: all files are from this version.
// The build hook (scripts/precache.mjs) fills in both lines below.
const VERSION = "";
const FILES = [];

// Another build on the same host has caches of its own.
const OWN = `headroom-${new URL(self.registration.scope).pathname}-`;
const CACHE = OWN + VERSION;

self.addEventListener("install", (event) => {
  const requests = FILES.map((file) => new Request(file, { cache: "reload" }));
  event.waitUntil(caches.open(CACHE).then((cache) => cache.addAll(requests)));
});

self.addEventListener("activate", (event) => {
  const tidy = async () => {
    const names = await caches.keys();
    await Promise.all(names.filter((it) => it.startsWith(OWN) && it !== CACHE).map((it) => caches.delete(it)));
    await self.clients.claim();
  };
  event.waitUntil(tidy());
});

// Opened once, since a page starts with half a dozen requests.
const kept = caches.open(CACHE);

self.addEventListener("fetch", (event) => {
  if (event.request.method !== "GET") return;
  const answer = async () => {
    const wanted = event.request.mode === "navigate" ? "./" : event.request.url;
    // A store that cannot be read is no reason to show nothing.
    const cache = await kept.catch(() => null);
    const found = await cache?.match(wanted, { ignoreSearch: true }).catch(() => null);
    if (found) return found;
    const fresh = await fetch(event.request);
    // A recorded graph is cached on its first request.
    if (cache && fresh.ok && new URL(event.request.url).pathname.includes("/graphs/")) await cache.put(event.request.url, fresh.clone());
    return fresh;
  };
  event.respondWith(answer());
});

self.addEventListener("message", (event) => {
  if (event.data === "take-over") self.skipWaiting();
});
