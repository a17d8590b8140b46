import { baseMisses } from "./base-misses.ts";
import type { NearMiss } from "./draft.ts";
import type { MismatchContext } from "./near-miss.ts";
import { paramsMisses } from "./params-misses.ts";
import { signingMisses } from "./signing-misses.ts";
import { valueMisses } from "./value-misses.ts";

/** Every near miss, the usual ones first. */
export function nearMisses(context: MismatchContext): readonly NearMiss[] {
  const all = [
    ...baseMisses(context),
    ...valueMisses(context),
    ...signingMisses(context),
    ...paramsMisses(context),
  ];
  return [...all.filter(({ isUsual }) => isUsual), ...all.filter(({ isUsual }) => !isUsual)];
}
