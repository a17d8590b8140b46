// The code that readers copy: fences of READMEs, of documents and of pages, and the files of examples/snippets.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { memberFolders } from "../../scripts/workspace.mjs";
import { pageFiles } from "../../site/scripts/source.mjs";

const root = resolve(dirname(fileURLToPath(import.meta.url)), "../..");
const read = (file: string): string => readFileSync(join(root, file), "utf8");

/** One place that shows code; its pieces are fences, or one whole file. */
export interface ShownCode {
  readonly place: string;
  readonly pieces: readonly string[];
}

const markdownIn = (folder: string): readonly string[] =>
  readdirSync(join(root, folder))
    .filter((name) => name.endsWith(".md"))
    .map((name) => `${folder}/${name}`);

const fence = /^( *)```(\w+)(?: (?:file|run)=[^\n]*)?\n([\s\S]*?)^ *```$/gm;

/** Every fence of a markdown text in a language of these, without its indentation. */
export function fencesOf(markdown: string, isMeant: (language: string) => boolean): readonly string[] {
  return [...markdown.matchAll(fence)]
    .filter(([, , language = ""]) => isMeant(language))
    .map(([, indent = "", , code = ""]) => code.replaceAll(new RegExp(`^${indent}`, "gm"), ""));
}

/** What is shown as code for its indentation alone. */
export function indentedBlocksOf(markdown: string): readonly string[] {
  const blocks = markdown
    .replaceAll(fence, "")
    .matchAll(/(?<=\n\n)((?: {4}[^\n]*\n)(?:(?: {4}[^\n]*)?\n)*)/g);
  return [...blocks].map(([block]) => block.replaceAll(/^ {4}/gm, "").trimEnd());
}

const scripts = new Set(["ts", "js", "tsx", "mts", "mjs", "cjs", "typescript", "javascript"]);

export function allShownCode(): readonly ShownCode[] {
  const documents = ["README.md", "docs", ...memberFolders()].flatMap((name) =>
    name.endsWith(".md") ? [name] : markdownIn(name),
  );
  const shown = [...documents, ...pageFiles()].map((place) => ({
    place,
    pieces: fencesOf(read(place), (language) => scripts.has(language)),
  }));
  const snippets = readdirSync(join(root, "examples/snippets/src"), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))
    .map((name) => snippet(`examples/snippets/src/${name}`));
  return [...shown, ...snippets].filter(({ pieces }) => pieces.length > 0);
}

/** A file, and behind it those that it imports by a path. */
function snippet(place: string): ShownCode {
  const code = read(place);
  const imported = [...code.matchAll(/ from "(\.[^"]+)"/g)]
    .map(([, from = ""]) => join(dirname(place), from.replace(/\.js$/, ".ts")))
    .filter((file) => existsSync(join(root, file)));
  return { place, pieces: [code, ...imported.map(read)] };
}
