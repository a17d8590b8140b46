import { createHash } from "node:crypto";
import { signedBytes, type Draft, type NearMiss } from "./draft.ts";
import type { Pace } from "./pace.ts";

/** What a search has found. */
interface Found {
  /** One near miss, or two together. */
  readonly misses: readonly NearMiss[];
}

export interface SearchResult {
  readonly found: Found | undefined;
  /** Signatures verified. */
  readonly attempts: number;
}

/** How a search is bounded. */
export interface SearchBounds {
  readonly maxAttempts: number;
  readonly pace: Pick<Pace, "rest">;
}

/**
 * Tries the near misses one by one, then the usual ones by twos, until one fits or `maxAttempts` signatures were verified, at this
 * pace. What two near misses have in common is tried once.
 */
export async function search(
  right: Draft,
  misses: readonly NearMiss[],
  { maxAttempts, pace }: SearchBounds,
): Promise<SearchResult> {
  const tried = new Set([fingerprintOf(right)]);
  let attempts = 0;
  for (const candidate of candidates(misses)) {
    // oxlint-disable-next-line no-await-in-loop -- one after the other is what it is for
    await pace.rest();
    const draft = candidate.reduce((made, miss) => miss.apply(made), right);
    const fingerprint = fingerprintOf(draft);
    if (tried.has(fingerprint)) continue;
    tried.add(fingerprint);
    if (attempts >= maxAttempts) break;
    attempts += 1;
    if (fits(draft)) return { found: { misses: candidate }, attempts };
  }
  return { found: undefined, attempts };
}

function* candidates(misses: readonly NearMiss[]): Generator<readonly NearMiss[]> {
  for (const miss of misses) yield [miss];
  const usual = misses.filter(({ isUsual }) => isUsual);
  for (const [index, one] of usual.entries()) {
    for (const other of usual.slice(index + 1)) {
      if (one.group !== other.group) yield [one, other];
    }
  }
}

function fits(draft: Draft): boolean {
  try {
    return draft.verify(draft.key, signedBytes(draft), draft.signature);
  } catch {
    // A key of another kind than the one that this way of verifying is for.
    return false;
  }
}

const idOfWay = new WeakMap<Draft["verify"], number>();
let ways = 0;

function fingerprintOf(draft: Draft): string {
  const way = idOfWay.get(draft.verify) ?? (ways += 1);
  idOfWay.set(draft.verify, way);
  return createHash("sha256")
    .update(`${way} ${draft.key.keyid.length} ${draft.key.keyid} ${draft.signature.length} `)
    .update(draft.signature)
    .update(signedBytes(draft))
    .digest("base64");
}
