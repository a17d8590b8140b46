import { optionError, readOptions } from "@countersign/core/door";
import { isLogger, table, writeEntries, type LogOptions } from "./entries.ts";

/** A logger that takes fields and a message: that of pino, and its children. */
export interface FieldLogger {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

const factoryName = "pinoLog";

/**
 * Logs the refusals, notices and held keys of this process: `warn` for the caller's faults, `error` for requests that were not decided.
 * Fields are those of the verdict; an error is `err`, which pino serialises. Returns what ends it. Throws an OptionError.
 */
export function pinoLog(logger: FieldLogger, options: LogOptions = {}): () => void {
  const read = readOptions(factoryName, table, options);
  if (!isLogger(logger)) throw optionError(factoryName, "logger", "a pino logger", logger);
  return writeEntries(factoryName, read, ({ level, message, fields, error }) =>
    logger[level](error === undefined ? fields : { ...fields, err: error }, message),
  );
}
