import { readFileSync } from "node:fs";

/** What a mistake is explained by: a line of `mistakes.txt` or `other-mistakes.txt`. */
export interface ExplainedAs {
  readonly mistake: string;
  /** The stable identifier. */
  readonly what: string;
  /** The first sentence, whole. */
  readonly says: string;
}

/** The lines of one of the two files. */
export function explainedAs(file: "mistakes.txt" | "other-mistakes.txt"): readonly ExplainedAs[] {
  const text = readFileSync(new URL(file, import.meta.url), "utf8");
  return text
    .trimEnd()
    .split("\n")
    .map((line) => {
      const [mistake = "", what = "", says = ""] = line.split(" | ");
      return { mistake, what, says };
    });
}
