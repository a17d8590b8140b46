import {
  escapeForLog,
  isError,
  option,
  optionError,
  readOptions,
  type OptionOwner,
  type OptionTable,
} from "@countersign/core/internal";
import { isLogger, table, writeEntries, type LogOptions } from "./entries.ts";

export type LineConsole = Pick<Console, "info" | "warn" | "error">;

export interface ConsoleLogOptions extends LogOptions {
  /** Default the console of the process. */
  readonly console?: LineConsole | undefined;
}

const factoryName = "consoleLog";
const longestText = 300;

export const consoleTable = {
  ...table,
  console: option.optional(option.own(readConsole)),
} satisfies OptionTable<ConsoleLogOptions, unknown>;

function readConsole(given: unknown, owner: OptionOwner, name: string): LineConsole {
  if (isLogger(given)) return given;
  throw optionError(owner, name, "a console", given);
}

/** Writes a line per refusal, notice or held key: `<time> <level> <message>: name=value`. Returns what ends it. Throws an OptionError. */
export function consoleLog(options: ConsoleLogOptions = {}): () => void {
  const { console: target = globalThis.console, ...read } = readOptions(factoryName, consoleTable, options);
  return writeEntries(factoryName, read, ({ level, message, fields, error }) => {
    const parts = Object.entries({ ...fields, error: textOf(error) }).flatMap(([name, value]) =>
      value === undefined ? [] : [`${name}=${show(value)}`],
    );
    const line = [new Date().toISOString(), level, `${escapeForLog(message, longestText)}:`, ...parts];
    target[level](line.join(" "));
  });
}

function textOf(error: unknown): string | undefined {
  if (error === undefined) return undefined;
  return isError(error) ? error.message : "a value that is no Error";
}

function show(value: unknown): string {
  if (typeof value === "number") return String(Math.round(value * 1000) / 1000);
  if (Array.isArray(value)) return show(value.join(" "));
  const text = escapeForLog(String(value), longestText);
  return /^[\w.:/#-]+$/.test(text) ? text : `"${text}"`;
}
