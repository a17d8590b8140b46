import {
  encodeText,
  isAsSeen,
  seenRow,
  type Added,
  type KeyChange,
  type NewRow,
  type RowsWithin,
  type Seen,
  type SeenRow,
} from "@countersign/idempotency/store";
import {
  integerOf,
  singleRow,
  type SqliteDatabase,
  type SqliteRow,
  type SqliteStatement,
} from "./connection.ts";
import { engineClock, tableNames } from "./schema.ts";

/** A key as it was read, when, and the fence below which no new key may begin. */
export interface Sighting {
  readonly row: SeenRow | undefined;
  /** Milliseconds since 1970. */
  readonly nowMs: number;
  readonly fenceFloor: number;
}

interface KeyRowsOptions {
  /** Prefix of the tables' names. */
  readonly table: string;
  /** Milliseconds since 1970; null for SQLite's clock. */
  readonly now: () => number | null;
}

/** The columns of a row but for its key. */
export const columns: readonly string[] = [
  "state",
  "token",
  "fence",
  "fingerprint",
  "reason",
  "recovery",
  "until_ms",
  "version",
  "decision",
];

/** The rows of keys on one connection. Keys are stored texts: what `encodeText` makes of a key. */
export class KeyRows {
  readonly #now: () => number | null;
  readonly #look: SqliteStatement;
  readonly #insert: SqliteStatement;
  readonly #update: SqliteStatement;

  constructor(database: SqliteDatabase, { table, now }: KeyRowsOptions) {
    const { idempotency, schema } = tableNames(table);
    this.#now = now;
    this.#look = database.prepare(
      `SELECT ${engineClock} AS now_ms, floor.fence_floor, ${columns.map((column) => `kept.${column}`).join(", ")}
       FROM ${schema} AS floor LEFT JOIN ${idempotency} AS kept ON kept.key = ? WHERE floor.id = 1`,
    );
    this.#insert = database.prepare(
      `INSERT INTO ${idempotency} (key, ${columns.join(", ")}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 1, NULL) ON CONFLICT (key) DO NOTHING`,
    );
    this.#update = database.prepare(
      `UPDATE ${idempotency} SET state = ?, token = ?, fence = ?, fingerprint = ?, reason = ?, recovery = ?, until_ms = ?, decision = ?,
         version = version + 1
       WHERE key = ?`,
    );
  }

  look(key: string): Sighting {
    const found = singleRow(this.#look.get(key));
    const nowMs = this.#now() ?? integerOf(found["now_ms"]);
    const row = found["state"] === null ? undefined : rowAt(found, nowMs);
    return { row, nowMs, fenceFloor: integerOf(found["fence_floor"]) };
  }

  /** Writes a key as it was sighted under the write lock that is still held. Returns the row's fence. Throws when nothing was written. */
  put(key: string, { row, nowMs, fenceFloor }: Sighting, change: KeyChange): number {
    const { state, token = row?.token, fingerprint = row?.fingerprint, reason, durationMs } = change;
    const { recovery = row?.recovery } = change;
    if (token === undefined || fingerprint === undefined || recovery === undefined) {
      throw new TypeError("the first row of a key needs a token, a fingerprint and a recovery");
    }
    // The clock keeps a fence above those that a restored backup has not seen, the last fence above those of a clock that was set back.
    const raised = Math.max((row?.fence ?? fenceFloor) + 1, nowMs * 1_000);
    const fence = row === undefined || change.raisesFence === true ? raised : row.fence;
    const texts = [encodeText(fingerprint), encodeText(reason), recovery] as const;
    const written = [state, encodeText(token), fence, ...texts] as const;
    const untilMs = nowMs + durationMs;
    const { decision = row?.decision ?? null } = change;
    const { changes } =
      row === undefined
        ? this.#insert.run(key, ...written, untilMs)
        : this.#update.run(...written, untilMs, decision === null ? null : JSON.stringify(decision), key);
    // Otherwise the payout would be paid without its key.
    if (Number(changes) === 0) throw new Error("SQLite did not write a key; look for triggers");
    return fence;
  }
}

/** The rows in the transaction that is open on their connection, under the write lock. */
export class RowsInTransaction implements RowsWithin<undefined> {
  readonly #rows: KeyRows;

  constructor(rows: KeyRows) {
    this.#rows = rows;
  }

  add(_tx: undefined, rows: readonly NewRow[]): Required<Added> {
    const keys = new Set<string>();
    const found = new Map<string, SeenRow>();
    for (const { key, row } of rows) {
      const storedKey = encodeText(key);
      const sighting = this.#rows.look(storedKey);
      if (sighting.row === undefined) {
        this.#rows.put(storedKey, sighting, row);
        keys.add(key);
      } else found.set(key, sighting.row);
    }
    return { keys, found };
  }

  look(_tx: undefined, keys: readonly string[]): ReadonlyMap<string, SeenRow> {
    return new Map(
      keys.flatMap((key) => {
        const { row } = this.#rows.look(encodeText(key));
        return row === undefined ? [] : [[key, row] as const];
      }),
    );
  }

  write(_tx: undefined, key: string, change: KeyChange, seen: Seen): boolean {
    const storedKey = encodeText(key);
    const sighting = this.#rows.look(storedKey);
    if (sighting.row === undefined || !isAsSeen(sighting.row, seen)) return false;
    this.#rows.put(storedKey, sighting, change);
    return true;
  }
}

export function rowAt(row: SqliteRow, nowMs: number): SeenRow {
  return seenRow(row, {
    fence: integerOf(row["fence"]),
    version: integerOf(row["version"]),
    remainingMs: integerOf(row["until_ms"]) - nowMs,
    nowMs,
  });
}
