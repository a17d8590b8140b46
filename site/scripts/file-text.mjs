// What a page shows of a file.
import { read } from "./source.mjs";

/** The whole file, or what stands in it between `#region name` and its `#endregion`, without marks and with less indentation. */
export function fileText(file, { region } = {}) {
  const text = read(file);
  if (region === undefined) return shown(text);
  const lines = text.split("\n");
  const first = lines.findIndex((line) => line.trim().replace(/^(\/\/|#) /, "") === `#region ${region}`);
  const length = lines
    .slice(first)
    .findIndex((line) => line.trim().replace(/^(\/\/|#) /, "") === `#endregion ${region}`);
  if (first < 0 || length < 0) throw new Error(`${file} has no region ${region}`);
  const inside = lines.slice(first + 1, first + length);
  const margin = Math.min(...inside.filter((line) => line !== "").map((line) => /^ */.exec(line)[0].length));
  return shown(inside.map((line) => line.slice(margin)).join("\n"));
}

/** Without marks. Express 4 is installed beside Express 5 here; readers have one of them, under its own name. */
function shown(text) {
  return text.replaceAll(/^ *(\/\/|#) #(end)?region .*\n/gm, "").replaceAll('"express4"', '"express"');
}
