import { optionError } from "@countersign/guard";

/** The limit of a body where none is given: 100 kB, that is 102,400 bytes. */
export const defaultLimitBytes: number = 100 * 1024;

const maxLimitBytes = 1024 ** 3;
const limitText = /^([1-9]\d{0,9})(b|kb|mb|gb)?$/i;
const bytesPerUnit: Readonly<Record<string, number>> = { b: 1, kb: 1024, mb: 1024 ** 2, gb: 1024 ** 3 };

/** Options of `rawBody`. */
export interface RawBodyOptions {
  /** The largest accepted body: an integer of bytes, or text such as "100kb" or "1mb" (1 kb is 1024 bytes). Default "100kb". */
  readonly limit?: number | string | undefined;
}

/**
 * Turns the option `limit` of `factory` into bytes, `undefined` into {@link defaultLimitBytes}. Throws a TypeError for anything
 * that is not a whole number from one byte to one gigabyte: a parser that cannot read its limit takes it for "unlimited".
 */
export function resolveLimitBytes(factory: string, limit: number | string | undefined): number {
  if (limit === undefined) return defaultLimitBytes;
  const limitBytes = typeof limit === "string" ? bytesOf(limit) : limit;
  if (!isLimitBytes(limitBytes) || limitBytes > maxLimitBytes) {
    throw optionError(
      factory,
      "limit",
      'an integer of bytes, or text such as "100kb" or "1mb", up to "1gb"',
      limit,
    );
  }
  return limitBytes;
}

/** Whether `value` is a usable limit; in comparisons NaN would let every length pass. */
export function isLimitBytes(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value > 0;
}

function bytesOf(limit: string): number {
  const match = limitText.exec(limit);
  if (match === null) return Number.NaN;
  return Number(match[1]) * (bytesPerUnit[(match[2] ?? "b").toLowerCase()] ?? Number.NaN);
}
