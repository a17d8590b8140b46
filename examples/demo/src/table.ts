import { styleText } from "node:util";
import type { Report } from "./cases.ts";

/** The table of results, of which each row is printed as soon as it is known. */
export interface ResultTable {
  readonly add: Report;
  /** Prints what is about to happen. */
  readonly say: (text: string) => void;
  /** Prints how many results were as expected. Returns whether all were. */
  end(): boolean;
}

// Together at most 60 columns; what was expected has a line of its own.
const nameColumns = 34;

/** `print` gets one line or several at a time, without the last line break. */
export function resultTable(print: (lines: string) => void, colours: boolean): ResultTable {
  let all = 0;
  let asExpected = 0;
  const paint = (colour: "green" | "red" | "dim", text: string): string =>
    colours ? styleText(colour, text, { validateStream: false }) : text;
  return {
    say: (text) => print(`\n${paint("dim", text)}`),
    add({ name, expected, got, ok }) {
      all += 1;
      if (ok) asExpected += 1;
      const row = `${name.padEnd(nameColumns)}  ${got}`;
      if (ok) print(`${paint("green", "ok")}  ${row}`);
      else print(`${paint("red", `NO  ${row}`)}\n    ${"expected".padEnd(nameColumns)}  ${expected}`);
    },
    end() {
      const isAll = asExpected === all;
      print(`\n${paint(isAll ? "green" : "red", `${asExpected} of ${all} as expected`)}`);
      return isAll;
    },
  };
}

/** A table on stdout: with colours on a terminal that has them, unless NO_COLOR is set. */
export function printedTable(): ResultTable {
  const colours = process.stdout.isTTY && process.stdout.hasColors();
  return resultTable((lines) => console.log(lines), colours);
}
