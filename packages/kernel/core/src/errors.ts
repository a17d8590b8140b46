import { types } from "node:util";

/**
 * True for an error of any realm and of any class. `types.isNativeError` alone does not know an error that a driver has made of a function
 * with Error's prototype, as libsql does its SqliteError; `instanceof` alone does not know Node's own errors in a vm context.
 */
export function isError(value: unknown): value is Error {
  return types.isNativeError(value) || value instanceof Error;
}

/** The options of an error with a cause; none without one, so that no error prints `[cause]: undefined`. */
export function causedBy(cause: unknown): ErrorOptions | undefined {
  return cause === undefined ? undefined : { cause };
}
