import {
  limitRule,
  option,
  optionError,
  type OptionOwner,
  type OptionTable,
  type ReadOptions,
} from "@countersign/core/door";
import {
  digestLengths,
  isDigestAlgorithm,
  type ContentDigestPolicyOptions,
  type DigestAlgorithm,
} from "./digest-fields.ts";

/** Options of `contentDigest`. */
export interface ContentDigestOptions extends ContentDigestPolicyOptions {
  /** The largest accepted body, in bytes or as "100kb", where this guard is the first to read it. Default "100kb". */
  readonly limit?: number | string | undefined;
}

export const policyTable = {
  algorithms: option.own(readAlgorithms, "both"),
  required: option.boolean(true),
  status: option.integer({ min: 400, max: 499, fallback: 401 }),
} satisfies OptionTable<ContentDigestPolicyOptions, unknown>;

export const table = {
  ...policyTable,
  limit: limitRule(),
} satisfies OptionTable<ContentDigestOptions, unknown>;

/** The options of `contentDigest` with defaults. */
export type ResolvedDigestOptions = ReadOptions<typeof table>;

export function readAlgorithms(
  algorithms: unknown = ["sha-256", "sha-512"],
  owner: OptionOwner,
  name: string,
): readonly DigestAlgorithm[] {
  if (
    Array.isArray(algorithms) &&
    algorithms.length > 0 &&
    algorithms.every(isDigestAlgorithm) &&
    new Set(algorithms).size === algorithms.length
  ) {
    return [...algorithms];
  }
  const known = [...digestLengths.keys()].join(" and ");
  throw optionError(owner, name, `a non-empty array of ${known}, each once`, algorithms);
}
