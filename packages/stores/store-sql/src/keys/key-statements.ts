import type { IdempotencyListQuery } from "@countersign/idempotency";
import {
  encodeText,
  seenRow,
  type FirstChange,
  type KeyChange,
  type NewRow,
  type Row,
  type Seen,
  type SeenRow,
} from "@countersign/idempotency/store";
import type { Columns, SqlDialect } from "../sql/dialect.ts";
import type { SqlEngine } from "../sql/engine.ts";
import type { KeyParts } from "../sql/key-parts.ts";
import { fragment, joined, raw, type Sql } from "../sql/sql.ts";
import { equal, isOneOf } from "../sql/statements.ts";
import { integerOf } from "../sql/values.ts";

type KeyEngine = Pick<SqlEngine, "dialect" | "names" | "keys" | "now">;

/** The statements of the rows of keys, over which a table decides nothing. */
export class KeyStatements {
  readonly #engine: KeyEngine;
  readonly #dialect: SqlDialect;
  readonly #table: Sql;

  constructor(engine: KeyEngine) {
    this.#engine = engine;
    this.#dialect = engine.dialect;
    this.#table = raw(engine.names.idempotency);
  }

  /** Gives one row: the key's, or nulls. */
  look(key: string): Sql {
    const { keys, now } = this.#parts();
    const { columns, from, where } = keys.session;
    const isKey = equal(this.#dialect.ids.key(key), "kept.");
    return fragment`SELECT ${columns}, ${this.columns(now)}${keys.confirming.alone}
FROM ${from} LEFT JOIN ${this.#table} AS kept ON ${isKey} WHERE ${where}`;
  }

  /** Gives the rows of the keys. Run in a transaction, or by itself where the engine's look of many waits for what it finds. */
  lookAll(keys: readonly string[]): Sql {
    const { keys: parts, now } = this.#parts();
    return fragment`SELECT ${parts.key}, ${this.columns(now)}${parts.confirming.within}
FROM ${this.#table} AS kept${parts.byKey} WHERE ${parts.areOf(keys)}${parts.locking}`;
  }

  /** Adds a key's first row, by itself, unless it has one. `fence`: of a row that no statement gives back. */
  add(key: string, row: FirstChange, guard: Sql, fence?: number): Sql {
    const dialect = this.#dialect;
    const { idempotency } = this.#engine.names;
    const columns = this.#first({ key, row }, fence);
    const id = dialect.ids.key(key);
    const isAbsent = fragment`NOT EXISTS (SELECT 1 FROM ${this.#table} AS seen WHERE ${equal(id, "seen.")}) AND ${guard}`;
    return fragment`${dialect.insert(idempotency, [columns], this.#engine.keys.looksFirst ? guard : isAbsent)}
${dialect.unlessThere(Object.keys(id))}`;
  }

  /** Adds the first row of a key that has none, in a transaction, and waits for others that have added it. */
  addOne(row: NewRow): Sql {
    const dialect = this.#dialect;
    const id = Object.keys(dialect.ids.key(row.key));
    return fragment`${dialect.insert(this.#engine.names.idempotency, [this.#first(row)], raw("1 = 1"))}
${dialect.unlessThere(id)}`;
  }

  /** Adds the first rows of the keys that have none, in this order, in a transaction, and waits for others that have added them. */
  addAll(rows: readonly NewRow[], guard: Sql): Sql {
    const dialect = this.#dialect;
    const [first] = rows;
    const id = Object.keys(dialect.ids.key(first?.key ?? ""));
    const columns = rows.map((row) => this.#first(row));
    return fragment`${dialect.insert(this.#engine.names.idempotency, columns, guard)}
${dialect.orLock(id)}`;
  }

  /** Changes one row, or none where the row is not as it was seen. `fence`: of a row that no statement gives back. */
  write(key: string, { change, seen, fence }: RowWrite, guard?: Sql): Sql {
    const dialect = this.#dialect;
    const { now } = this.#parts();
    const { state, reason, durationMs, token, fingerprint, recovery, decision, raisesFence } = change;
    const set: Record<string, Sql> = {
      // Raised by every write, a heartbeat's too: else a stale look could take a key whose lease was just renewed.
      version: raw("version + 1"),
      state: dialect.state(state),
      reason: this.#text(reason),
      [dialect.until]: dialect.after(now, durationMs),
    };
    if (token !== undefined) set["token"] = this.#text(token);
    if (fingerprint !== undefined) set["fingerprint"] = this.#text(fingerprint);
    if (recovery !== undefined) set["recovery"] = dialect.state(recovery);
    if (decision !== undefined) {
      set["decision"] = decision === null ? raw("NULL") : dialect.text(JSON.stringify(decision));
    }
    if (raisesFence === true) {
      const time = dialect.hasReturning ? dialect.microseconds(now) : dialect.integer(fence);
      set["fence"] = fragment`${raw(dialect.greatest)}(fence + 1, ${time})`;
    }
    const where = fragment`${equal(dialect.ids.key(key))} AND token = ${this.#text(seen.token)} AND ${this.#isAsSeen(seen)}`;
    return dialect.update({ of: this.#engine.names.idempotency, set, where, guard });
  }

  /** A page of keys in a state. Its order is that of the keys: no key changes pages. */
  page({ state, limit }: Pick<IdempotencyListQuery, "state" | "limit">, after: Sql): Sql {
    const { keys, now } = this.#parts();
    const until = raw(`kept.${this.#dialect.until}`);
    const isLive = state === "done" ? fragment` AND ${until} > ${this.#dialect.once(now)}` : raw("");
    return fragment`SELECT ${keys.listed}, ${this.columns(now)} FROM ${this.#table} AS kept
WHERE ${keys.isIn(state)}${isLive} AND ${keys.order} > ${after} ORDER BY ${keys.order} LIMIT ${this.#dialect.integer(limit)}`;
  }

  /** What {@link KeyStatements.rowOf} reads. */
  columns(now: Sql): Sql {
    const names = ["state", "token", "fence", "version", "fingerprint", "reason", "recovery", "decision"];
    const remaining = this.#dialect.milliseconds(raw(`kept.${this.#dialect.until}`), now);
    return joined([
      ...names.map((name) => raw(`kept.${name}`)),
      fragment`${remaining} AS remaining_ms`,
      fragment`${this.#dialect.microseconds(now)} AS now_us`,
    ]);
  }

  rowOf(row: Row): SeenRow {
    const texts = ["state", "recovery", "token", "fingerprint", "reason", "decision"]
      .filter((name) => row[name] !== null && row[name] !== undefined)
      .map((name) => [name, this.#dialect.readText(row[name])]);
    return seenRow(Object.fromEntries(texts), {
      fence: integerOf(row["fence"]),
      version: integerOf(row["version"]),
      remainingMs: wholeMilliseconds(row["remaining_ms"]),
      nowMs: Math.floor(integerOf(row["now_us"]) / 1_000),
    });
  }

  /** The rows that {@link KeyStatements.lookAll} has found, by key. */
  rowsByKey(keys: readonly string[], found: readonly Row[]): ReadonlyMap<string, SeenRow> {
    const rows = new Map(found.flatMap((row) => (row["key"] === undefined ? [] : [[row["key"], row]])));
    return new Map(
      keys.flatMap((key) => {
        const row = rows.get(this.#engine.keys.keyText(key));
        return row === undefined ? [] : [[key, this.rowOf(row)] as const];
      }),
    );
  }

  #parts(): { readonly keys: KeyParts; readonly now: Sql } {
    return { keys: this.#engine.keys, now: this.#engine.now() };
  }

  #first({ key, row }: NewRow, fence?: number): Columns {
    const dialect = this.#dialect;
    const { keys, now } = this.#parts();
    const { state, token, fingerprint, reason, recovery, durationMs } = row;
    return {
      ...dialect.ids.key(key),
      ...dialect.named(key),
      state: dialect.state(state),
      token: this.#text(token),
      fence: fence === undefined ? this.#firstFence(keys, now) : dialect.integer(fence),
      fingerprint: this.#text(fingerprint),
      reason: this.#text(reason),
      recovery: dialect.state(recovery),
      [dialect.until]: dialect.after(now, durationMs),
      version: raw("1"),
    };
  }

  /** The time, and above all that was pruned, in case the clock was set back. */
  #firstFence({ floor }: KeyParts, now: Sql): Sql {
    const time = this.#dialect.microseconds(now);
    // In a transaction no owner is told of the fence: one of lease mode gets its own above this row's, and above all that were pruned.
    return floor === undefined ? time : fragment`${raw(this.#dialect.greatest)}(${time}, ${floor})`;
  }

  #isAsSeen(seen: Seen): Sql {
    if ("version" in seen) return fragment`version = ${this.#dialect.integer(seen.version)}`;
    return isOneOf(
      raw("state"),
      seen.states.map((state) => this.#dialect.state(state)),
    );
  }

  #text(text: string): Sql {
    return this.#dialect.text(encodeText(text));
  }
}

/** A write of a row that was seen. */
export interface RowWrite {
  readonly change: KeyChange;
  readonly seen: Seen;
  /** Of the row after the change. */
  readonly fence: number;
}

/** The fence of the row that a change makes of the seen one; 0 where nobody asks for it. */
export function fenceAfter({ raisesFence }: KeyChange, seen: Seen): number {
  if ("states" in seen) return 0;
  return raisesFence === true ? Math.max(seen.fence + 1, seen.nowMs * 1_000) : seen.fence;
}

/** Rounds up: what is left of a live lease is never 0. Takes a number as a text, too. */
function wholeMilliseconds(value: unknown): number {
  const isNumeric = typeof value === "string" || typeof value === "number" || typeof value === "bigint";
  // To a microsecond first: older servers have what is left in binary fractions of a second.
  const milliseconds = Math.ceil(Math.round((isNumeric ? Number(value) : Number.NaN) * 1_000) / 1_000);
  if (value === "" || Number.isNaN(milliseconds)) {
    throw new Error("the database library gave no number of milliseconds where there is always one");
  }
  // Not the -0 to which a negative fraction is rounded.
  return milliseconds + 0;
}
