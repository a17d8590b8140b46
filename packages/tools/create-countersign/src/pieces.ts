import type { Choices } from "./choices.ts";

const line = /^\s*(?:\/\/|#|<!--) #(?<word>if|end)\b ?(?<names>[a-z, ]*?)(?: -->)?$/;

/**
 * Leaves out of a template what is not for these choices: the lines between a comment `#if postgres, redis` and `#end`, unless
 * one of the names is chosen; and the comments themselves. A kept line behind `//: ` loses that: it would not be valid beside its
 * alternative. Throws an Error on blocks inside of blocks, or without an end.
 */
export function chosenLines(template: string, { framework, store, language }: Choices): string {
  const chosen: ReadonlySet<string> = new Set([framework, store, language]);
  const kept: string[] = [];
  let block: "none" | "kept" | "left out" = "none";
  for (const text of template.split("\n")) {
    const { word, names = "" } = line.exec(text)?.groups ?? {};
    if (word !== undefined && (word === "if") !== (block === "none")) {
      throw new Error(`a template has ${text.trim()} where it cannot be`);
    }
    if (word === "if") block = names.split(", ").some((name) => chosen.has(name)) ? "kept" : "left out";
    else if (word === "end") block = "none";
    else if (block !== "left out") kept.push(text.replace(/^(\s*)\/\/: /, "$1"));
  }
  if (block !== "none") throw new Error("a template has an #if without an #end");
  // Of the empty lines around a block, one is enough.
  return kept
    .join("\n")
    .replaceAll(/\n{3,}/g, "\n\n")
    .replace(/\n+$/, "\n");
}
