// The steps of a key inside of a transaction, over the rows of a table: what engines with transactions share. Which change follows which row
// is in life.ts.
import type { Seen } from "../key-table.ts";
import {
  decideBegin,
  decideBroken,
  decideOwn,
  decideRelease,
  firstBegin,
  firstBroken,
  type FirstChange,
  type KeyChange,
  type Retentions,
  type SeenRow,
} from "../life.ts";
import type { Awaitable } from "../store.ts";
import { answerOf, type Steps } from "./steps.ts";
import type { KeyBegun, TransactionClaim, TransactionKey } from "./transaction-store.ts";

/** The rows of keys, as one transaction reads and writes them: many at once where the engine can. */
export interface RowsWithin<Tx> {
  /** Adds the first rows of those keys that have none, in this order, and waits for other transactions that have added them. */
  add(tx: Tx, rows: readonly NewRow[]): Awaitable<Added>;
  /** Reads the rows of these keys, also those that are over. */
  look(tx: Tx, keys: readonly string[]): Awaitable<ReadonlyMap<string, SeenRow>>;
  /** As `write` of a table: true if the row was as seen. */
  write(tx: Tx, key: string, change: KeyChange, seen: Seen): Awaitable<boolean>;
}

export interface Added {
  /** The keys that were added. */
  readonly keys: ReadonlySet<string>;
  /** The rows of the others, where the engine has read them in the same step. */
  readonly found?: ReadonlyMap<string, SeenRow>;
}

export interface NewRow {
  readonly key: string;
  readonly row: FirstChange;
}

/** Claims keys for a transaction, in an order that is the same for all. `added` is what the engine has done already. */
export function beginKeys<Tx>(
  rows: RowsWithin<Tx>,
  tx: Tx,
  claim: Pick<TransactionClaim, "keys" | "recovery" | "leaseMs">,
  added?: Added,
): Steps<readonly KeyBegun[]> {
  return written<Tx, KeyBegun>(rows, tx, claim.keys, {
    added,
    first: (key) => ({ change: firstBegin(key, claim.leaseMs), answer: { status: "begun" } }),
    next(row, key) {
      const { write: change, reply } = decideBegin(row, key, claim);
      return change === undefined ? { answer: reply } : { change, answer: reply(row.fence) };
    },
  });
}

/** Leaves keys to an operator whose transaction has ended before its handler did. */
export function* holdBroken<Tx>(rows: RowsWithin<Tx>, tx: Tx, keys: readonly TransactionKey[]): Steps<void> {
  yield* written<Tx, undefined>(rows, tx, keys, {
    first: (key) => ({ change: firstBroken(key), answer: undefined }),
    next: (row, key) => ({ change: decideBroken(row, key), answer: undefined }),
  });
}

/** Leaves the keys to an operator that have the run's token, by `decideOwn`. Returns them; in the run's transaction only what it has written. */
export function* holdOwn<Tx>(
  rows: Pick<RowsWithin<Tx>, "look" | "write">,
  tx: Tx,
  keys: readonly TransactionKey[],
  { reason, isOpen }: { readonly reason: string; readonly isOpen: boolean },
): Steps<ReadonlySet<string>> {
  const names = keys.map(({ key }) => key);
  const found = yield* answerOf(rows.look(tx, names));
  const own = new Set<string>();
  for (const { key, token } of keys) {
    const row = found.get(key);
    const decided = decideOwn(row, token, reason, isOpen);
    if (decided === undefined || row === undefined) continue;
    const isWritten =
      decided.write === undefined || (yield* answerOf(rows.write(tx, key, decided.write, row)));
    // Who has changed it since has changed a row that proves what has committed.
    if (isWritten || !isOpen) own.add(key);
  }
  return own;
}

/** Frees keys that a transaction has begun and nobody has run. Returns the rows as they are then, with what triggers have made of them. */
export function* freeKeys<Tx>(
  rows: RowsWithin<Tx>,
  tx: Tx,
  keys: readonly TransactionKey[],
  retentions: Retentions,
): Steps<ReadonlyMap<string, SeenRow>> {
  const names = keys.map(({ key }) => key);
  const found = yield* answerOf(rows.look(tx, names));
  for (const { key, token } of keys) {
    const row = found.get(key);
    const { write } = decideRelease(row, token, retentions);
    if (write !== undefined && row !== undefined) yield* answerOf(rows.write(tx, key, write, row));
  }
  return yield* answerOf(rows.look(tx, names));
}

/** Whether one of the keys, which were to be freed, is still running for its token. A key that is gone, or somebody else's, is not. */
export function isAnyRun(rows: ReadonlyMap<string, SeenRow>, keys: readonly TransactionKey[]): boolean {
  return keys.some(({ key, token }) => {
    const row = rows.get(key);
    return row?.state === "running" && row.token === token;
  });
}

/** In one order for all transactions, so that no two wait for each other. */
export function byKey(one: TransactionKey, other: TransactionKey): number {
  return one.key < other.key ? -1 : 1;
}

/** What is written of a key, and the answer once it is; without a change the answer at once. */
interface Written<Answer, Change = KeyChange | undefined> {
  readonly change?: Change;
  readonly answer: Answer;
}

interface WritingRules<Answer> {
  readonly added?: Added | undefined;
  readonly first: (key: TransactionKey) => Required<Written<Answer, FirstChange>>;
  readonly next: (row: SeenRow, key: TransactionKey) => Written<Answer>;
}

// Each time somebody else has changed the row in between. So many changes of one key within one step are a fault, not a race.
const mostTries = 20;

function* written<Tx, Answer>(
  rows: RowsWithin<Tx>,
  tx: Tx,
  keys: readonly TransactionKey[],
  { added: first, ...rules }: WritingRules<Answer>,
): Steps<readonly Answer[]> {
  // Work that has no keys.
  if (keys.length === 0) return [];
  const answers = new Map<string, { readonly answer: Answer }>();
  const ordered = [...keys];
  ordered.sort(byKey);
  let open: readonly TransactionKey[] = ordered;
  let added = first;
  for (let tried = 0; tried < mostTries; tried += 1) {
    const news = open.map((key) => ({ key: key.key, row: rules.first(key).change }));
    added ??= yield* answerOf(rows.add(tx, news));
    for (const key of open) if (added.keys.has(key.key)) answers.set(key.key, rules.first(key));
    open = open.filter(({ key }) => !answers.has(key));
    if (open.length > 0) {
      const names = open.map(({ key }) => key);
      const found = added.found ?? (yield* answerOf(rows.look(tx, names)));
      for (const key of open) {
        const row = found.get(key.key);
        // Pruned in between: added next time.
        if (row === undefined) continue;
        const next = rules.next(row, key);
        if (next.change === undefined || (yield* answerOf(rows.write(tx, key.key, next.change, row))))
          answers.set(key.key, next);
      }
      open = open.filter(({ key }) => !answers.has(key));
    }
    if (open.length === 0)
      return keys.flatMap(({ key }) => answers.get(key) ?? []).map(({ answer }) => answer);
    added = undefined;
  }
  throw new Error("a key was changed by others, again and again; look for triggers that drop a new row");
}
