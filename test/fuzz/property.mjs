import { inspect, isDeepStrictEqual } from "node:util";

/**
 * Throws unless `holds`. `property` is what is broken, the same text each time; `details` are the values that show it.
 * @param {boolean} holds @param {string} property @param {Record<string, unknown>} [details]
 */
export function assertProperty(holds, property, details = {}) {
  if (!holds) throw new Error(`${property}\n${inspect(details, { depth: 8, maxStringLength: 2000 })}`);
}

/** @param {unknown} actual @param {unknown} expected @param {string} property */
export function assertSame(actual, expected, property) {
  assertProperty(isDeepStrictEqual(actual, expected), property, { actual, expected });
}

/**
 * What `action` returns as `value`, or what it throws as `error`.
 * @template Value @param {() => Value} action @returns {{ value: Value, error?: undefined } | { value?: undefined, error: Error }}
 */
export function attempt(action) {
  try {
    return { value: action() };
  } catch (error) {
    return { error };
  }
}

/** The words of a dictionary, as they are written, between white space: a tag for a template. */
export function words({ raw }) {
  return raw.join("").trim().split(/\s+/);
}
