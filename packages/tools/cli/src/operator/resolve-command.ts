import { printable } from "../printable.ts";
import { filled } from "../table.ts";
import { shownKey } from "./key-text.ts";
import type { StoreFlags } from "./store-options.ts";

const flagsOf: readonly (readonly [name: keyof StoreFlags, flag: string])[] = [
  ["storeUrl", "--store-url"],
  ["storeModule", "--store-module"],
  ["schema", "--schema"],
  ["table", "--table"],
  ["prefix", "--prefix"],
];

/** A command that decides about one attempt, as words for the shell. */
export function resolveCommand(
  key: string,
  { outcome, fence, given }: { outcome: "done" | "released"; fence: number; given: StoreFlags },
): readonly string[] {
  const shown = shownKey(key);
  const store = flagsOf.flatMap(([name, flag]) => {
    const value = given[name];
    return value === undefined ? [] : [`${flag} ${printable(quoted(hidden(name, value)))}`];
  });
  return [
    "countersign keys resolve",
    shown.startsWith('"') ? `--key-json ${singleQuoted(shown)}` : quoted(shown),
    `--as ${outcome}`,
    `--fence ${fence}`,
    ...store,
  ];
}

/** The words in one line, or in several with a backslash between them where a terminal is too narrow. */
export function commandLines(words: readonly string[], terminalColumns: number | undefined): string[] {
  if (terminalColumns === undefined) return [words.join(" ")];
  // Behind each line but the last stands a backslash, and before each but the first two blanks.
  const lines = filled(words, terminalColumns - 4);
  return lines.map((line, at) => (at === 0 ? "" : "  ") + line + (at < lines.length - 1 ? " \\" : ""));
}

// A password in a URL is not repeated: whoever copies the command has it in the environment, or writes it once more.
function hidden(name: keyof StoreFlags, value: string): string {
  return name === "storeUrl" ? value.replace(/(:\/\/[^/@]*:)[^@]*@/, "$1…@") : value;
}

function quoted(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : singleQuoted(text);
}

function singleQuoted(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
