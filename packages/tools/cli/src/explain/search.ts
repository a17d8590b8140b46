import type { Remedy } from "./explanation.ts";
import type { NearMiss } from "./near-miss.ts";
import type { Pace } from "./pace.ts";

export interface Search<Draft> {
  /** The right drafts: one for each accepted key or secret. */
  readonly drafts: readonly Draft[];
  readonly misses: readonly NearMiss<Draft>[];
  /** Whether such a sender would send what was received. */
  readonly fits: (draft: Draft) => boolean;
  /** Drafts of one identity are tried once. Default: all are tried. */
  readonly identityOf?: ((draft: Draft) => string) | undefined;
  readonly maxAttempts?: number | undefined;
  readonly pace: Pick<Pace, "rest">;
}

/** Tries the right drafts, each near miss, then the usual ones in pairs. Ends when one fits, or after `maxAttempts` calls. Yields between two. */
export async function search<Draft>(wanted: Search<Draft>) {
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

export function remedyOfMisses(misses: readonly Pick<NearMiss<unknown>, "says" | "what">[]): Remedy {
  const [first = "", second] = misses.map(({ says }) => says);
  const sentence = second === undefined ? first : `Two things: ${first} And: ${second}`;
  return [misses.map(({ what }) => what).join("+"), sentence];
}
