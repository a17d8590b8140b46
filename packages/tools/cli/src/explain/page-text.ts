import { existsSync, readFileSync } from "node:fs";

/** A page of the documentation, such as `guide/doctor`: the copy that the package has from npm, in the repository the page itself. */
export function pageText(page: string): string {
  const packed = new URL(`../../pages/${page}.md`, import.meta.url);
  const own = existsSync(packed) ? packed : new URL(`../../../../../site/pages/${page}.md`, import.meta.url);
  return readFileSync(own, "utf8");
}

/** Markdown for a terminal: a link becomes its words, and one after a colon is left out. */
export function wordsOf(markdown: string): string {
  return markdown.replaceAll(/: \[[^\]]+\]\([^)]+\)|\[([^\]]+)\]\([^)]+\)/g, "$1");
}
