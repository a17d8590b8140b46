import { optionError, type OptionRule } from "./options.ts";
import { isLimitBytes } from "./received-request.ts";

const maxLimitBytes = 1024 ** 3;
const limitText = /^([1-9]\d{0,9})(b|kb|mb|gb)?$/i;
const bytesPerUnit: Readonly<Record<string, number>> = { b: 1, kb: 1024, mb: 1024 ** 2, gb: 1024 ** 3 };

/** The rule of `limit`, in bytes: 1 byte to 1 gigabyte. A parser takes a limit that it cannot read for "unlimited". */
export function limitRule(fallback: "100kb" | "1mb" = "100kb"): OptionRule<number> {
  return {
    byDefault: `"${fallback}"`,
    read: (value = fallback, owner, name) => {
      const limitBytes = typeof value === "string" ? bytesOf(value) : value;
      if (isLimitBytes(limitBytes) && limitBytes <= maxLimitBytes) return limitBytes;
      const expected = 'an integer of bytes, or text such as "100kb" or "1mb", up to "1gb"';
      throw optionError(owner, name, expected, value);
    },
  };
}

function bytesOf(limit: string): number {
  const match = limitText.exec(limit);
  if (match === null) return Number.NaN;
  return Number(match[1]) * (bytesPerUnit[(match[2] ?? "b").toLowerCase()] ?? Number.NaN);
}
