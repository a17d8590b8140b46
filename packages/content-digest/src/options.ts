import { assertKnownOptions, booleanOption, integerOption, optionError } from "@countersign/guard";
import { resolveLimitBytes } from "@countersign/raw-body";
import { digestLengths, isDigestAlgorithm, type DigestAlgorithm } from "./digest.ts";

/** Options of `contentDigest`. */
export interface ContentDigestOptions {
  /**
   * At least one digest must be of these algorithms, the preferred one first. A digest of another known algorithm is checked
   * too, but does not suffice. Default `["sha-256", "sha-512"]`.
   */
  readonly algorithms?: readonly DigestAlgorithm[] | undefined;
  /** Refuse a request without the field. With false only a field that is present is checked. Default true. */
  readonly required?: boolean | undefined;
  /** The largest accepted body, in bytes or as "100kb", where this guard is the first to read it. Default "100kb". */
  readonly limit?: number | string | undefined;
  /** The status of a refusal, 400 to 499. Default 401. */
  readonly status?: number | undefined;
}

/** What a Content-Digest field must satisfy. */
export interface DigestPolicy {
  readonly algorithms: readonly DigestAlgorithm[];
  readonly required: boolean;
  readonly status: number;
}

/** The options with defaults. Throws a TypeError for what contentDigest() cannot work with. */
export function resolveOptions(
  options: ContentDigestOptions,
): DigestPolicy & { readonly limitBytes: number } {
  assertKnownOptions("contentDigest", options, ["algorithms", "required", "limit", "status"]);
  return {
    algorithms: resolveAlgorithms(options.algorithms),
    required: booleanOption("contentDigest", "required", options.required, true),
    limitBytes: resolveLimitBytes("contentDigest", options.limit),
    status: integerOption("contentDigest", "status", options.status, { min: 400, max: 499, fallback: 401 }),
  };
}

function resolveAlgorithms(algorithms: ContentDigestOptions["algorithms"]): readonly DigestAlgorithm[] {
  if (algorithms === undefined) return ["sha-256", "sha-512"];
  if (
    !Array.isArray(algorithms) ||
    algorithms.length === 0 ||
    !algorithms.every(isDigestAlgorithm) ||
    new Set(algorithms).size !== algorithms.length
  ) {
    const known = [...digestLengths.keys()].join(" and ");
    throw optionError("contentDigest", "algorithms", `a non-empty array of ${known}, each once`, algorithms);
  }
  return [...algorithms];
}
