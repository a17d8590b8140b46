import { isPromiseLike } from "./deadline.ts";

/** A TypeError for a programmer's mistake: `<factory>: option <name> must be <expected>, got <value>`. */
export function optionError(factory: string, option: string, expected: string, got: unknown): TypeError {
  return new TypeError(`${factory}: option ${option} must be ${expected}, got ${describeValue(got)}`);
}

/** Throws a TypeError when `options` is no object or has a key outside `known`: a misspelt option must not be ignored. */
export function assertKnownOptions(factory: string, options: unknown, known: readonly string[]): void {
  // A promise has no keys of its own: every option would be its default, as if none had been given.
  if (typeof options !== "object" || options === null || Array.isArray(options) || isPromiseLike(options)) {
    throw new TypeError(`${factory}: options must be an object, got ${describeValue(options)}`);
  }
  for (const key of Object.keys(options)) {
    if (!known.includes(key)) {
      throw new TypeError(`${factory}: unknown option ${key}; known options are ${known.join(", ")}`);
    }
  }
}

/** Throws a TypeError unless `value` is a function. */
export function assertFunction(factory: string, option: string, value: unknown): void {
  if (typeof value !== "function") throw optionError(factory, option, "a function", value);
}

/**
 * The clock in milliseconds that the option `now` is, or performance.now. Throws a TypeError unless it is a function, and returns
 * one that throws when the clock gives no finite number: by NaN a lease neither lasts nor ends.
 */
export function clockOption(factory: string, now: (() => number) | undefined): () => number {
  if (now === undefined) return () => performance.now();
  assertFunction(factory, "now", now);
  return () => {
    const nowMs: unknown = now();
    if (typeof nowMs === "number" && Number.isFinite(nowMs)) return nowMs;
    throw optionError(factory, "now", "a function that gives milliseconds, a finite number", nowMs);
  };
}

/** Returns `value` when it is an integer within the bounds, `fallback` when it is undefined; throws a TypeError otherwise. */
export function integerOption(
  factory: string,
  option: string,
  value: unknown,
  {
    min,
    max,
    fallback,
  }: { readonly min: number; readonly max: number; readonly fallback?: number | undefined },
): number {
  if (value === undefined && fallback !== undefined) return fallback;
  if (typeof value !== "number" || !Number.isInteger(value) || value < min || value > max) {
    throw optionError(factory, option, `an integer from ${min} to ${max}`, value);
  }
  return value;
}

/** Returns `value` when it is a boolean, `fallback` when it is undefined; throws a TypeError otherwise. */
export function booleanOption(factory: string, option: string, value: unknown, fallback: boolean): boolean {
  if (value === undefined) return fallback;
  if (typeof value !== "boolean") throw optionError(factory, option, "true or false", value);
  return value;
}

/**
 * Throws a TypeError when NODE_ENV is `production`: what a memory store knows is gone with the process and unknown to the others.
 */
export function refuseInProduction(factory: string, allowInProduction: boolean): void {
  if (process.env["NODE_ENV"] === "production" && !allowInProduction) {
    throw new TypeError(
      `${factory}: a memory store forgets everything on restart and is not shared between processes; ` +
        "use a durable store in production, or set allowInProduction: true",
    );
  }
}

// Values of options can be secrets: only numbers, booleans and short type names are shown.
function describeValue(value: unknown): string {
  if (typeof value === "number" || typeof value === "boolean" || value === undefined || value === null)
    return String(value);
  if (typeof value === "string")
    return value === "" ? "an empty string" : `a string of ${value.length} characters`;
  if (Array.isArray(value)) return value.length === 0 ? "an empty array" : `an array of ${value.length}`;
  if (isPromiseLike(value)) return "a promise";
  return typeof value === "function"
    ? "a function"
    : typeof value === "object"
      ? "an object"
      : `a ${typeof value}`;
}
