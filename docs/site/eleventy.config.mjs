// docs/*.md as pages beside the app: eleventy --config docs/site/eleventy.config.mjs, from the root of the checkout.
import { readFileSync } from "node:fs";
import { basename } from "node:path";

// The order of the questions is that of their list.
const ORDER = [...readFileSync("docs/questions/README.md", "utf8").matchAll(/\]\((.*)\.md\)/g)].map(([, name]) => name);

// What the sources of the pages link to that is no page: it is read at the repository.
const isPage = (target) => /^[^:#]*\.md(#.*)?$/.test(target) && !target.startsWith("../..");

export default function (eleventy) {
  // The search, and the links that say so, are the layout's; pages are plain Markdown that also reads well where it is.
  eleventy.addGlobalData("layout", "page.njk");
  eleventy.addGlobalData("eleventyComputed", {
    permalink: ({ page }) => `${page.filePathStem.replace(/README$/, "index")}.html`,
    // From any page to the folder of all.
    up: ({ page }) => "../".repeat(page.filePathStem.split("/").length - 2),
  });
  eleventy.addFilter("heading", (content) => /<h1[^>]*>(.*?)<\/h1>/s.exec(content)?.[1].replace(/<[^>]*>/g, "") ?? "Headroom");
  eleventy.addFilter("questions", (pages) =>
    ORDER.map((name) => pages.find((page) => page.inputPath.endsWith(`/questions/${name}.md`))));
  eleventy.addFilter("references", (pages) => pages.filter((page) => /docs\/[^/]+\.md$/.test(page.inputPath) && basename(page.inputPath) !== "README.md"));
  eleventy.addFilter("title", (page) => /^# (.*)$/m.exec(page.rawInput)?.[1] ?? page.fileSlug);
  eleventy.addTransform("links", (content) => content.replace(/href="([^"]*)"/g, (whole, target) =>
    isPage(target) ? `href="${target.replace(/README\.md/, "index.html").replace(/\.md(#|$)/, ".html$1")}"` : whole));
  eleventy.addTransform("tables", (content) => content.replaceAll("<table>", '<div class="scrolls"><table>').replaceAll("</table>", "</table></div>"));
  // Braces in examples are theirs.
  eleventy.setTemplateFormats("md");
  eleventy.addPassthroughCopy({ "docs/site/site.css": "site.css", "docs/site/search.js": "search.js", "docs/screens": "screens", "docs/accuracy": "accuracy" });
  return {
    dir: { input: "docs", includes: "site", output: "dist/docs" },
    markdownTemplateEngine: false,
  };
}
