import type { VerificationKey } from "@countersign/http-message-signatures";
import type { Draft, NearMiss } from "./draft.ts";

/** What near misses are made of. */
export interface MismatchContext {
  readonly method: string;
  readonly target: string;
  readonly rawHeaders: readonly string[];
  /** Undefined where it is not known. */
  readonly body: Uint8Array | undefined;
  /** The label, and its member of Signature-Input as received. */
  readonly label: string;
  readonly member: string;
  /** The authority that callers see, if it is known. */
  readonly authority: string | undefined;
  readonly pathPrefixes: readonly string[];
  readonly keys: ReadonlyMap<string, VerificationKey>;
  /** The bytes of the other labels of Signature. */
  readonly otherSignatures: ReadonlyMap<string, Uint8Array>;
  readonly right: Draft;
}

/** Makes a near miss; `isUsual` is false where it is not given. */
export function miss(
  what: string,
  group: string,
  sentence: string,
  apply: (draft: Draft) => Draft,
  isUsual = false,
): NearMiss {
  return { what, group, sentence, apply, isUsual };
}

/** All orders of a list, at most `max` of them, without the one that it has. */
export function* otherOrders<Item>(items: readonly Item[], max: number): Generator<readonly Item[]> {
  let given = -1;
  for (const order of permutations(items)) {
    given += 1;
    if (given > max) return;
    if (given > 0) yield order;
  }
}

function* permutations<Item>(items: readonly Item[]): Generator<readonly Item[]> {
  if (items.length <= 1) {
    yield items;
    return;
  }
  for (const [index, item] of items.entries()) {
    const others = items.filter((_, at) => at !== index);
    for (const rest of permutations(others)) yield [item, ...rest];
  }
}
