import { readFileSync, statSync } from "node:fs";

/** The text of a file. Throws an Error whose message says why it cannot be read. */
export function readTextFile(file: string): string {
  const stats = statSync(file);
  // /dev/zero never ends. A pipe is what `<(command)` of a shell is: whoever names one waits for its writer.
  if (!stats.isFile() && !stats.isFIFO()) throw new Error("it is no file");
  return readFileSync(file, "utf8");
}
