// Where things are, and what the pages call them.
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

export const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../..");
export const site = path.join(root, "site");
/** What prepare.mjs writes and VitePress reads: every page as plain markdown. */
export const pagesFolder = path.join(site, ".pages");
export const outputFolder = path.join(site, "dist");

export const read = (...parts) => readFileSync(path.join(root, ...parts), "utf8");

/** The pages of site/pages, from the root. README.md lists them, for readers of the repository, and in the site's menu. */
export function pageFiles() {
  return readdirSync(path.join(site, "pages"), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".md") && name !== "README.md")
    .map((name) => `site/pages/${name.replaceAll(path.sep, "/")}`);
}

const manifest = JSON.parse(read("package.json"));
/** The address of the site, with a slash at its end. What messages lead to is `pages` in core's docs.ts. */
export const homepage = manifest.homepage;
/** The address of the code. test/docs/addresses.test.ts compares every other place with both. */
export const repository = manifest.repository.url.replace(/^git\+(.*)\.git$/, "$1");

/** False until npm has the packages: pages and README then say how to get them. A release sets it (docs/releasing.md). */
export const published = false;

/** Files of the repository that are pages as they stand, and the page that each becomes. */
export const documents = {
  "docs/using.md": "guide/typescript",
  "docs/sandbox-page.md": "guide/sandbox",
  "docs/inspector.md": "guide/inspector",
  "packages/stores/store-contract/STORE-RULES.md": "reference/store-rules",
  "docs/architecture.md": "concepts/architecture",
  "docs/spec.md": "concepts/spec",
  "test/faults/README.md": "concepts/fault-tests",
  "docs/observe.md": "reference/observe",
  "docs/alerts.md": "reference/alerts",
  "docs/not-supported.md": "reference/not-supported",
  "docs/rfc9421.md": "reference/rfc9421",
  "docs/performance.md": "reference/performance",
  "CHANGELOG.md": "changelog",
  "SECURITY.md": "security",
};
