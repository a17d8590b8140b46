import { defaultMaxDepth, limitRule, option, type OptionTable } from "@countersign/core/internal";

export interface RawBodyOptions {
  /** The largest accepted body: an integer of bytes, or text such as "100kb" or "1mb" (1 kb is 1024 bytes). Default "100kb". */
  readonly limit?: number | string | undefined;
}

export interface JsonBodyOptions {
  /** How many objects and arrays may be nested, 1 to 512. Default 64. */
  readonly maxDepth?: number | undefined;
}

export const table = { limit: limitRule() } satisfies OptionTable<RawBodyOptions, unknown>;

export const jsonTable: OptionTable<JsonBodyOptions> = {
  maxDepth: option.integer({ min: 1, max: 512, fallback: defaultMaxDepth }),
};
