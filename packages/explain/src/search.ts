import { createHash } from "node:crypto";
import { setImmediate as turn } from "node:timers/promises";
import { signedBytes, type Draft, type NearMiss } from "./draft.ts";

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

const attemptsPerTurn = 25;

/**
 * Tries the near misses one by one, then the usual ones by twos, until one fits or `maxAttempts` signatures were verified. After each 25
 * others have their turn of the event loop. What two near misses have in common is tried once.
 */
export async function search(
  right: Draft,
  misses: readonly NearMiss[],
  maxAttempts: number,
): Promise<SearchResult> {
  const tried = new Set([fingerprintOf(right)]);
  let attempts = 0;
  for (const candidate of candidates(misses)) {
    const draft = candidate.reduce((made, miss) => miss.apply(made), right);
    const fingerprint = fingerprintOf(draft);
    if (tried.has(fingerprint)) continue;
    tried.add(fingerprint);
    if (attempts >= maxAttempts) break;
    attempts += 1;
    if (fits(draft)) return { found: { misses: candidate }, attempts };
    // oxlint-disable-next-line no-await-in-loop -- one after the other is what it is for
    if (attempts % attemptsPerTurn === 0) await turn();
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
