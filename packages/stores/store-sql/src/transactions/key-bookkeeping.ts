import type { TransactionFault, TransactionKey } from "@countersign/idempotency";
import {
  byKey,
  fenceMemoryMs,
  firstBegin,
  freeKeys,
  holdBroken,
  isAnyRun,
  type NewRow,
  type RowsWithin,
  type SeenRow,
  type Steps,
} from "@countersign/idempotency/store";

/** What every store of transactions does with the keys of a run. */
export interface KeysOfRun<Tx> {
  /** Begins messages. */
  readonly name: string;
  readonly rows: RowsWithin<Tx>;
  readonly retentionMs: number;
  /** As messages name the tables. */
  readonly place: string;
}

/** The first rows of keys that a transaction begins, in the order that is the same for all: no two wait for each other. */
export function firstRows(keys: readonly TransactionKey[], leaseMs: number): readonly NewRow[] {
  const ordered = [...keys];
  ordered.sort(byKey);
  return ordered.map((key) => ({ key: key.key, row: firstBegin(key, leaseMs) }));
}

/** Those keys that are not among the ended ones. */
export function without(
  keys: readonly TransactionKey[],
  ended: readonly TransactionKey[],
): readonly TransactionKey[] {
  return keys.filter(({ key }) => ended.every((each) => each.key !== key));
}

/** Frees keys that a transaction has begun and nobody has run. Throws where one is not free then, as by a trigger. */
export function* freeBegun<Tx>(of: KeysOfRun<Tx>, tx: Tx, keys: readonly TransactionKey[]): Steps<void> {
  const freed = yield* free(of, tx, keys);
  // Else they would commit as running, and nobody runs them. A trigger can take the change back, a policy of row level security hide the row.
  if (!keys.every(({ key }) => freed.get(key)?.state === "free")) throw notFreed(of);
}

/**
 * In a new transaction, after a handler has ended its own. What ended it may have committed a part of the payment, as a change of a table's
 * definition does; or the handler may have paid after a rollback: its keys are left to an operator. The others, on which nobody has worked, are
 * freed where they have committed.
 */
export function* leaveBroken<Tx>(
  of: KeysOfRun<Tx>,
  tx: Tx,
  { keys, others }: { readonly keys: readonly TransactionKey[]; readonly others: readonly TransactionKey[] },
): Steps<ReadonlyMap<string, SeenRow>> {
  yield* holdBroken(of.rows, tx, keys);
  return yield* free(of, tx, others);
}

// Of keys that others want too: two claims that wait for a third one's rollback are a deadlock to InnoDB, and a conflict to what is serializable.
const maxLeaveAttempts = 20;

/**
 * Leaves the keys of a broken run by `leave`, a transaction with {@link leaveBroken}, once more after each conflict. Resolves to the error to
 * show: `error`, or both where the keys could not be left.
 */
export async function errorOfLeft(
  error: unknown,
  leave: () => Promise<void>,
  faultOf: (failure: unknown) => TransactionFault | undefined,
): Promise<unknown> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      // oxlint-disable-next-line no-await-in-loop -- one attempt after the other
      await leave();
      return error;
    } catch (failure) {
      if (faultOf(failure) === "conflict" && attempt < maxLeaveAttempts) continue;
      return new AggregateError([error, failure], "the keys could not be left as they should be");
    }
  }
}

/** Throws where one of the others is still running, behind the commit of {@link leaveBroken}. After a ROLLBACK there was nothing to free. */
export function assertLeft<Tx>(
  of: KeysOfRun<Tx>,
  rows: ReadonlyMap<string, SeenRow>,
  others: readonly TransactionKey[],
): void {
  if (isAnyRun(rows, others)) throw notFreed(of);
}

function* free<Tx>(
  { rows, retentionMs }: KeysOfRun<Tx>,
  tx: Tx,
  keys: readonly TransactionKey[],
): Steps<ReadonlyMap<string, SeenRow>> {
  if (keys.length === 0) return new Map();
  return yield* freeKeys(rows, tx, keys, { retentionMs, fenceMemoryMs });
}

function notFreed({ name, place }: Pick<KeysOfRun<never>, "name" | "place">): Error {
  return new Error(`${name}: the engine did not free the keys ${place}; look for triggers`);
}
