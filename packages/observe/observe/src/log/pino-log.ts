import { optionError, readOptions } from "@countersign/core/internal";
import { isLogger, table, writeEntries, type LogOptions } from "./entries.ts";

/** A pino logger, or one of its children. */
export interface FieldLogger {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

const factoryName = "pinoLog";

/**
 * Logs refusals (`warn`), undecided requests (`error`), notices and held keys; errors as `err`. Returns what ends it.
 */
export function pinoLog(logger: FieldLogger, options: LogOptions = {}): () => void {
  const read = readOptions(factoryName, table, options);
  if (!isLogger(logger)) throw optionError(factoryName, "logger", "a pino logger", logger);
  return writeEntries(factoryName, read, ({ level, message, fields, error }) =>
    logger[level](error === undefined ? fields : { ...fields, err: error }, message),
  );
}
