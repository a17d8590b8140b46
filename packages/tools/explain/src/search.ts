import type { Remedy } from "./explanation.ts";
import type { NearMiss } from "./near-miss.ts";
import type { Pace } from "./pace.ts";

/** A search for what a sender has done. */
export interface Search<Draft> {
  /** Those of senders that do everything right: one for each key or secret that is accepted. */
  readonly drafts: readonly Draft[];
  readonly misses: readonly NearMiss<Draft>[];
  /** Asks the check again: whether what was received is what such a sender sends. */
  readonly fits: (draft: Draft) => boolean;
  /** Two drafts of one identity are tried once. Without it all are tried. */
  readonly identityOf?: ((draft: Draft) => string) | undefined;
  readonly maxAttempts?: number | undefined;
  readonly pace: Pick<Pace, "rest">;
}

/** What fits, if anything does: the draft with no, one or two near misses; and how often `fits` was asked. */
export interface SearchResult<Draft> {
  readonly found: { readonly draft: Draft; readonly misses: readonly NearMiss<Draft>[] } | undefined;
  readonly attempts: number;
}

/**
 * Tries the right drafts, then each near miss, then the usual ones by twos, until one fits or `maxAttempts` were tried. Rests between
 * two attempts, so that an event loop is not held.
 */
export async function search<Draft>(wanted: Search<Draft>): Promise<SearchResult<Draft>> {
  const { drafts, misses, fits, identityOf, maxAttempts = 2000, pace } = wanted;
  const tried = new Set<string>();
  let attempts = 0;
  for (const candidate of candidates(misses)) {
    for (const right of drafts) {
      // oxlint-disable-next-line no-await-in-loop -- one after the other is what it is for
      await pace.rest();
      const draft = changedBy(candidate, right);
      if (draft === undefined) continue;
      const identity = identityOf?.(draft);
      if (identity !== undefined && tried.has(identity)) continue;
      if (identity !== undefined) tried.add(identity);
      if (attempts >= maxAttempts) return { found: undefined, attempts };
      attempts += 1;
      if (fits(draft)) return { found: { draft, misses: candidate }, attempts };
    }
  }
  return { found: undefined, attempts };
}

/** Undefined where one of them leaves the draft as it is. */
function changedBy<Draft>(candidate: readonly NearMiss<Draft>[], right: Draft): Draft | undefined {
  let draft = right;
  for (const { change } of candidate) {
    const changed = change(draft);
    if (changed === draft) return undefined;
    draft = changed;
  }
  return draft;
}

function* candidates<Draft>(misses: readonly NearMiss<Draft>[]): Generator<readonly NearMiss<Draft>[]> {
  yield [];
  for (const miss of misses) yield [miss];
  const usual = misses.filter(({ isUsual }) => isUsual);
  for (const [index, one] of usual.entries()) {
    for (const other of usual.slice(index + 1)) {
      if (one.part !== other.part) yield [one, other];
    }
  }
}

/** The remedy of near misses that fit: one, or two. */
export function remedyOfMisses(misses: readonly Pick<NearMiss<unknown>, "says" | "what">[]): Remedy {
  const [first = "", second] = misses.map(({ says }) => says);
  const sentence = second === undefined ? first : `Two things: ${first} And: ${second}`;
  return [misses.map(({ what }) => what).join("+"), sentence];
}
