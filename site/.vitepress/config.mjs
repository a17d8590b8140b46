import { readFileSync } from "node:fs";
import path from "node:path";
import { defineConfig } from "vitepress";
import { markdown } from "./markdown.mjs";
import { homepage, outputFolder, pagesFolder, repository } from "../scripts/source.mjs";

const groups = JSON.parse(readFileSync(path.join(pagesFolder, "groups.json"), "utf8"));

const title = "countersign";
const picture = "pictures/inspector-light.png";
const base = process.env["DOCS_BASE"] ?? new URL(homepage).pathname;

export default defineConfig({
  title,
  description: "Signed payouts and webhooks for platforms, each handled exactly once.",
  lang: "en",
  base,
  srcDir: pagesFolder,
  srcExclude: ["public/**"],
  outDir: outputFolder,
  cacheDir: path.join(pagesFolder, "../node_modules/.cache/vitepress"),
  // Any file server finds the pages.
  cleanUrls: false,
  metaChunk: true,
  transformHead: ({ pageData: { title: own, description, relativePath } }) =>
    Object.entries({
      "og:type": "website",
      "og:site_name": title,
      // The home page has no heading.
      "og:title": own || title,
      "og:description": description,
      "og:url": `${homepage}${relativePath.replace(/\.md$/, ".html")}`,
      "og:image": `${homepage}${picture}`,
      "og:image:alt": "A refused request, and what its sender has to change",
    }).map(([property, content]) => ["meta", { property, content }]),
  head: [["link", { rel: "icon", type: "image/svg+xml", href: `${base}icon.svg` }]],
  markdown,
  themeConfig: {
    logo: { src: "/icon.svg", alt: "" },
    nav: [
      { text: "Quick start", link: "/guide/quick-start" },
      { text: "Failure modes", link: "/concepts/failures" },
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
    search: {
      provider: "local",
      options: {
        detailedView: true,
        // The index has the words by which a page is searched for; the page does not show them.
        _render: (source, env, renderer) => {
          const html = renderer.render(source, env);
          const { keywords, description } = env.frontmatter ?? {};
          return html.replace(
            "</h1>",
            `</h1>\n<p>${[...Array.from({ length: 8 }, () => keywords), description].join(" ")}</p>\n`,
          );
        },
        miniSearch: {
          searchOptions: {
            boost: { title: 2, text: 2, titles: 1 },
            // Runs in the browser, so it knows nothing from outside: guides first, codes next, the API last.
            boostDocument: (id, term) => {
              if (id.includes("/reference/api/")) return 0.1;
              // Whoever looks for MariaDB does not know the package's name.
              if (/\/(?:guide|concepts|packages\/mysql)\b/.test(id)) return 3;
              if (!id.includes("/reference/codes")) return 0.5;
              // A code is typed whole, and its words stand on guides too.
              return id.slice(id.indexOf("#")).includes(term) ? 1.5 : 1;
            },
          },
        },
      },
    },
    // Its name for those who hear it is what stands on it.
    notFound: { linkText: "Home", linkLabel: "Home" },
    socialLinks: [{ icon: "github", link: repository }],
    footer: { message: "MIT licence" },
  },
});
