// Every link between the pages leads to a page that exists, and every fragment to a part of it: links.mjs FOLDER
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";

const [folder] = process.argv.slice(2);
const pages = readdirSync(folder, { recursive: true }).filter((name) => name.endsWith(".html") && !name.startsWith("pagefind"));
const text = (name) => readFileSync(join(folder, name), "utf8");
const broken = [];
let seen = 0;
for (const page of pages) {
  for (const [, target] of text(page).matchAll(/(?:href|src)="([^"]*)"/g)) {
    if (/^[a-z]+:/.test(target)) continue;
    seen += 1;
    const [path, part] = target.split("#");
    const to = path ? normalize(join(dirname(page), path)) : page;
    // Above the documents is the page itself, which another build puts there.
    if (to.startsWith("..")) continue;
    if (!existsSync(join(folder, to))) broken.push(`${page}: ${target}`);
    else if (part && to.endsWith(".html") && !text(to).includes(`id="${part}"`)) broken.push(`${page}: ${target}`);
  }
}
if (broken.length || seen < 100) {
  console.error(`site: ${broken.length} broken links of ${seen}\n${broken.join("\n")}`);
  process.exit(1);
}
console.log(`site: ${pages.length} pages, ${seen} links`);
