import { baseMisses } from "./base-misses.ts";
import type { NearMiss } from "./draft.ts";
import type { MismatchContext } from "./near-miss.ts";
import type { Pace } from "./pace.ts";
import { paramsMisses } from "./params-misses.ts";
import { signingMisses } from "./signing-misses.ts";
import { valueMisses } from "./value-misses.ts";

/** Every near miss, the usual ones first. */
export async function nearMisses(
  context: MismatchContext,
  pace: Pick<Pace, "rest">,
): Promise<readonly NearMiss[]> {
  const all: NearMiss[] = [];
  for (const missesOf of [baseMisses, valueMisses, signingMisses, paramsMisses]) {
    all.push(...missesOf(context));
    // oxlint-disable-next-line no-await-in-loop -- a body is hashed many times by each
    await pace.rest();
  }
  return [...all.filter(({ isUsual }) => isUsual), ...all.filter(({ isUsual }) => !isUsual)];
}
