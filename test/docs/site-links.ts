import { existsSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { workspacePackages } from "../../scripts/workspace.mjs";
import { anchorsOf, vitepressAnchor } from "../../site/scripts/anchors.mjs";
import { documents, homepage } from "../../site/scripts/source.mjs";
import { packagePage } from "./package-pages.ts";

const root = resolve(dirname(fileURLToPath(import.meta.url)), "../..");
const packages = [...workspacePackages.keys()];
// Made when the site is built; npm run docs:check looks at what is in them.
const made = new Set([
  "reference/codes",
  "reference/packages",
  "reference/api",
  ...packages.map((name) => `reference/api/${name}`),
]);

/** The addresses of pages of the site that a text links to. */
export function siteLinks(markdown: string): readonly string[] {
  const links = [...markdown.matchAll(/\]\((https:[^)\s]+)\)/g)].map(([, link = ""]) => link);
  return links.filter((link) => link.startsWith(homepage)).map((link) => link.slice(homepage.length));
}

/** Those of them that lead to no page, or to no place in it. */
export function brokenSiteLinks(markdown: string): readonly string[] {
  return siteLinks(markdown).filter((link) => {
    const [, page = "", fragment] = /^([^#]*)\.html(?:#(.*))?$/.exec(link) ?? [];
    const text = textOf(page);
    if (text === undefined) return fragment !== undefined || !made.has(page);
    return fragment !== undefined && !fragmentsOf(text).has(fragment);
  });
}

function textOf(page: string): string | undefined {
  const [, name = ""] = /^reference\/packages\/([a-z-]+)$/.exec(page) ?? [];
  if (packages.includes(name)) return packagePage(name);
  const document = Object.entries(documents).find(([, of]) => of === page)?.[0];
  const file = join(root, document ?? `site/pages/${page}.md`);
  return existsSync(file) ? readFileSync(file, "utf8") : undefined;
}

function fragmentsOf(markdown: string): ReadonlySet<string> {
  return new Set(anchorsOf(markdown, vitepressAnchor));
}
