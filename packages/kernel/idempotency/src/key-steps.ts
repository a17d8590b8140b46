// The steps of a key's life over a table: look, decide (life.ts), write where the row is still as it was seen. Whoever loses a race looks
// and decides again. The steps yield what a table returned, a value or a promise, and get the value. Each step can be repeated after a lost
// reply, since its token tells it from everybody else's.
import type { KeyTable } from "./key-table.ts";
import {
  completion,
  decideClaim,
  decideFirstClaim,
  isCompletedBy,
  renewal,
  type Decision,
  type SeenRow,
} from "./life.ts";
import type { IdempotencyClaim, IdempotencyClaimResult, IdempotencyOwnership } from "./store.ts";
import type { Steps } from "./transactions/steps.ts";

// Each time somebody else has changed the row in between. So many changes of one key within one step are a fault, not a race.
const mostTries = 100;

/** Claims a key: one `add`, and for a duplicate a `look` where the table has not read its row. */
export function* claimKey(
  table: KeyTable,
  key: string,
  claim: IdempotencyClaim,
): Steps<IdempotencyClaimResult> {
  const first = decideFirstClaim(claim);
  for (let tried = 0; tried < mostTries; tried += 1) {
    const added: number | SeenRow | undefined = yield table.add(key, first.write);
    if (typeof added === "number") return first.reply(added);
    const row: SeenRow | undefined = added ?? (yield table.look(key));
    // Pruned in between: add it.
    if (row === undefined) continue;
    const decision = decideClaim(row, claim);
    if (decision.write === undefined) return decision.reply;
    const written: number | undefined = yield table.write(key, decision.write, row);
    if (written !== undefined) return decision.reply(written);
  }
  throw new Error("the key was changed by others, again and again");
}

/** Looks, decides and writes, until nobody has changed the row between the look and the write. */
export function* decideKey<Reply>(
  table: KeyTable,
  key: string,
  decide: (row: SeenRow | undefined) => Decision<Reply>,
): Steps<Reply> {
  for (let tried = 0; tried < mostTries; tried += 1) {
    const row: SeenRow | undefined = yield table.look(key);
    const decision = decide(row);
    if (decision.write === undefined) return decision.reply;
    if (row === undefined) throw new TypeError("a key without a row is changed by a claim alone");
    const fence: number | undefined = yield table.write(key, decision.write, row);
    if (fence !== undefined) return decision.reply(fence);
  }
  throw new Error("the key was changed by others, again and again");
}

/** Ends the owner's lease `leaseMs` from now. */
export function* renewKey(
  table: KeyTable,
  key: string,
  token: string,
  leaseMs: number,
): Steps<IdempotencyOwnership> {
  const { from: states, write } = renewal(leaseMs);
  const fence: number | undefined = yield table.write(key, write, { token, states });
  return fence === undefined ? "lost" : "ok";
}

/** Completes the owner's key; `ok` again where the owner has completed it before. */
export function* completeKey(
  table: KeyTable,
  key: string,
  token: string,
  retentionMs: number,
): Steps<IdempotencyOwnership> {
  const { from: states, write } = completion(retentionMs);
  const fence: number | undefined = yield table.write(key, write, { token, states });
  if (fence !== undefined) return "ok";
  const row: SeenRow | undefined = yield table.look(key);
  return isCompletedBy(token, row) ? "ok" : "lost";
}
