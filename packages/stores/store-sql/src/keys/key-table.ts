import type { IdempotencyListQuery, TransactionMode } from "@countersign/idempotency";
import {
  answerOf,
  keyBefore,
  pageOfRows,
  type FirstChange,
  type KeyChange,
  type KeyTable,
  type ListedRows,
  type Returned,
  type Seen,
  type SeenRow,
  type Steps,
} from "@countersign/idempotency/store";
import type { SqlEngine } from "../sql/engine.ts";
import { PrunedTable } from "../sql/pruned-table.ts";
import { fragment, raw } from "../sql/sql.ts";
import { integerOf, singleRow } from "../sql/values.ts";
import { fenceAfter, KeyStatements } from "./key-statements.ts";

interface Sighting {
  readonly row: SeenRow | undefined;
  /** Of a first row, where no statement gives it back. */
  readonly firstFence: number | undefined;
}

/** The table of keys. Each step commits by itself. */
export class SqlKeyTable<Mode extends TransactionMode> extends PrunedTable<Mode> implements KeyTable {
  readonly #server: SqlEngine<never, Mode>;
  readonly #sql: KeyStatements;

  constructor(server: SqlEngine<never, Mode>) {
    const { dialect, names, name } = server;
    const { until } = dialect;
    super(server, `${name} idempotency store`, {
      table: names.idempotency,
      key: Object.keys(dialect.ids.key("")),
      until,
      isExpired: (now) => fragment`state IN ('done', 'free') AND ${raw(until)} <= ${now}`,
      areKeys: true,
    });
    this.#server = server;
    this.#sql = new KeyStatements(server);
  }

  add(key: string, row: FirstChange): Returned<Mode, number | SeenRow | undefined> {
    return this.run(() => this.#add(key, row));
  }

  look(key: string): Returned<Mode, SeenRow | undefined> {
    return this.run(() => this.#look(key));
  }

  write(key: string, change: KeyChange, seen: Seen): Returned<Mode, number | undefined> {
    return this.run(() => this.#write(key, change, seen));
  }

  list(query: IdempotencyListQuery): Returned<Mode, ListedRows> {
    return this.run(() => this.#list(query));
  }

  /** Undefined where the key has a row: a claim then looks, and finds out whether it was somebody's transaction that stood in the way. */
  *#add(key: string, row: FirstChange): Steps<number | SeenRow | undefined> {
    const found = this.#server.keys.looksFirst ? yield* this.#sight(key) : undefined;
    if (found?.row !== undefined) return found.row;
    const fence = found?.firstFence;
    return yield* answerOf(
      this.#server.changeOne(this.name, (guard) => this.#sql.add(key, row, guard, fence), { fence }),
    );
  }

  *#look(key: string): Steps<SeenRow | undefined> {
    return (yield* this.#sight(key)).row;
  }

  *#write(key: string, change: KeyChange, seen: Seen): Steps<number | undefined> {
    const step = { change, seen, fence: fenceAfter(change, seen) };
    const isTold = this.#server.dialect.hasReturning && change.raisesFence === true;
    const isHeartbeat = "states" in seen && change.state === "running";
    const fence = yield* answerOf(
      this.#server.changeOne(this.name, (guard) => this.#sql.write(key, step, guard), {
        fence: isTold ? undefined : step.fence,
        isHeartbeat,
      }),
    );
    // In somebody's transaction nothing is written either, and that is no answer: the look throws.
    if (fence === undefined && !this.#server.guardFails) yield* this.#look(key);
    return fence;
  }

  *#list({ state, cursor, limit }: IdempotencyListQuery): Steps<ListedRows> {
    const { keys } = this.#server;
    const after = keys.pageAfter(this.name, keyBefore(this.name, cursor));
    // One row more than asked for tells whether another page follows.
    const page = this.#sql.page({ state, limit: limit + 1 }, after);
    const found = yield* answerOf(this.#server.read(this.name, page));
    return pageOfRows(found, limit, (row) => ({ key: keys.keyOf(row), row: this.#sql.rowOf(row) }));
  }

  *#sight(key: string): Steps<Sighting> {
    for (;;) {
      const row = singleRow(yield* answerOf(this.#server.read(this.name, this.#sql.look(key), 1)));
      const highest = row["highest_fence"];
      const firstFence =
        highest === undefined ? undefined : Math.max(integerOf(row["now_us"]), integerOf(highest) + 1);
      if (row["state"] === null) return { row: undefined, firstFence };
      const seen = this.#sql.rowOf(row);
      if (seen.state !== "done" || this.#server.confirmDone === undefined) return { row: seen, firstFence };
      const confirmed = yield* answerOf(this.#server.confirmDone(this.name, key, seen));
      if (confirmed !== "changed") return { row: confirmed, firstFence };
    }
  }
}
