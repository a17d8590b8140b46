import { readFileSync } from "node:fs";
import path from "node:path";
import { defineConfig } from "vitepress";
import { homepage, outputFolder, pagesFolder, repository } from "../scripts/source.mjs";

const groups = JSON.parse(readFileSync(path.join(pagesFolder, "groups.json"), "utf8"));

export default defineConfig({
  title: "countersign",
  description: "Signed payouts and webhooks for platforms, each handled exactly once.",
  lang: "en",
  base: process.env["DOCS_BASE"] ?? new URL(homepage).pathname,
  srcDir: pagesFolder,
  srcExclude: ["public/**"],
  outDir: outputFolder,
  cacheDir: path.join(pagesFolder, "../node_modules/.cache/vitepress"),
  // Any file server finds the pages.
  cleanUrls: false,
  metaChunk: true,
  head: [["link", { rel: "icon", href: "data:," }]],
  markdown: {
    theme: { light: "github-light-high-contrast", dark: "github-dark-high-contrast" },
  },
  themeConfig: {
    nav: [
      { text: "Quick start", link: "/guide/quick-start" },
      { text: "What happens when", link: "/concepts/failures" },
      { text: "Codes", link: "/reference/codes" },
      { text: "Packages", link: "/reference/packages" },
    ],
    // A group that folds has a link: without one the theme nests a button in a button.
    sidebar: groups.map(({ text, page, folded, items }) => ({
      text,
      ...(folded ? { collapsed: true, link: `/${page}` } : {}),
      items: items.map((item) => ({ text: item.text, link: `/${item.page}` })),
    })),
    outline: [2, 3],
    search: { provider: "local" },
    // Its name for those who hear it is what stands on it.
    notFound: { linkText: "Home", linkLabel: "Home" },
    socialLinks: [{ icon: "github", link: repository }],
    footer: { message: "MIT licence" },
  },
});
