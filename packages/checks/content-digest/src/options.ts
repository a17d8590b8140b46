import {
  limitRule,
  option,
  optionError,
  type OptionOwner,
  type OptionTable,
  type ReadOptions,
} from "@countersign/core/internal";

/** The algorithms that RFC 9530 section 5 calls "active". */
export type DigestAlgorithm = "sha-256" | "sha-512";

export function isDigestAlgorithm(algorithm: unknown): algorithm is DigestAlgorithm {
  return algorithm === "sha-256" || algorithm === "sha-512";
}

export interface ContentDigestPolicyOptions {
  /** At least one digest must be of these, the preferred one first; other known ones are checked too. Default `["sha-256", "sha-512"]`. */
  readonly algorithms?: readonly DigestAlgorithm[] | undefined;
  /** Refuse a request without the field; false checks only a field that is present. Default true. */
  readonly required?: boolean | undefined;
  /** The status of a refusal, 400 to 499. Default 401. */
  readonly status?: number | undefined;
}

export interface ContentDigestOptions extends ContentDigestPolicyOptions {
  /** The largest accepted body, in bytes or as "100kb", if this guard reads it first. Default "100kb". */
  readonly limit?: number | string | undefined;
}

export const policyTable = {
  algorithms: option.own(readAlgorithms, "both"),
  required: option.boolean(true),
  status: option.integer({ min: 400, max: 499, fallback: 401 }),
} satisfies OptionTable<ContentDigestPolicyOptions, unknown>;

export type DigestPolicy = ReadOptions<typeof policyTable>;

export const table = {
  ...policyTable,
  limit: limitRule(),
} satisfies OptionTable<ContentDigestOptions, unknown>;

/** Reads a list without repeats. Throws an OptionError that names the `known` entries. */
export function readList<Entry extends string>(
  given: unknown,
  isKnown: (entry: unknown) => entry is Entry,
  place: { readonly owner: OptionOwner; readonly name: string; readonly known: string },
): readonly Entry[] {
  const isList = Array.isArray(given) && given.length > 0 && given.every(isKnown);
  if (isList && new Set(given).size === given.length) return [...given];
  throw optionError(place.owner, place.name, `a non-empty array of ${place.known}, each once`, given);
}

export function readAlgorithms(
  algorithms: unknown = ["sha-256", "sha-512"],
  owner: OptionOwner,
  name: string,
): readonly DigestAlgorithm[] {
  return readList(algorithms, isDigestAlgorithm, { owner, name, known: "sha-256 and sha-512" });
}
