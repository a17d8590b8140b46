import type { IdempotencyListQuery } from "@countersign/idempotency";
import {
  damagedCursor,
  decodeText,
  keyBefore,
  pageOfRows,
  pruning,
  seenRow,
  type FirstChange,
  type KeyChange,
  type KeyTable,
  type ListedRows,
  type Row,
  type Seen,
  type SeenRow,
} from "@countersign/idempotency/store";
import type { Engine } from "./engine.ts";
import { duplicateKey, errnoOf } from "./errors.ts";
import { KeyStatements } from "./key-statements.ts";
import type { ResolvedMysqlOptions } from "./options.ts";
import { PrunedTable, type PrunedBatch } from "./pruning.ts";
import { integerOf, singleRow, storedText } from "./values.ts";

export const name = "mysql idempotency store";

interface Sighting {
  readonly row: SeenRow | undefined;
  /** That of a first row: the engine's time, and above all that was pruned, in case the clock was set back. */
  readonly firstFence: number;
}

/** The table of keys. Each statement commits by itself. */
export class MysqlKeyTable<Tx> extends PrunedTable<Tx> implements KeyTable {
  readonly #sql: KeyStatements;

  constructor(server: Engine<Tx>, options: ResolvedMysqlOptions<Tx>) {
    super(name, server, options, {
      table: options.names.idempotency,
      isExpired: (now) => `state IN ('done', 'free') AND until_us <= ${now}`,
      columns: ["state", "fence"],
    });
    this.#sql = new KeyStatements(options, this.now);
  }

  /**
   * Looks first, without a lock: a duplicate is told by one message, writes nothing, and does not wait for an open transaction.
   * An INSERT that comes first would: it locks the row that it finds. The fence is that of the look, since an INSERT gives none back. No
   * row has come and gone in between: it outlives by hours whoever has not seen it.
   */
  async add(key: string, row: FirstChange): Promise<number | SeenRow | undefined> {
    const found = await this.#find(key);
    if (found.row !== undefined) return found.row;
    try {
      await this.server.change(name, ...this.#sql.add(key, row, found.firstFence));
      return found.firstFence;
    } catch (error) {
      if (errnoOf(error) === duplicateKey) return undefined;
      throw error;
    }
  }

  async look(key: string): Promise<SeenRow | undefined> {
    return (await this.#find(key)).row;
  }

  async write(key: string, change: KeyChange, seen: Seen): Promise<number | undefined> {
    const fence = fenceAfter(change, seen);
    const changed = await this.server.change(name, ...this.#sql.write(key, { change, seen, fence }));
    return changed > 0 ? fence : undefined;
  }

  async list({ state, cursor, limit }: IdempotencyListQuery): Promise<ListedRows> {
    const digest = keyBefore(name, cursor);
    if (digest !== "" && !/^[0-9a-f]{64}$/.test(digest)) throw damagedCursor(name);
    // One row more than asked for tells whether another page follows.
    const found = await this.alone(this.#sql.page(state), [Buffer.from(digest, "hex"), limit + 1]);
    return pageOfRows(found, limit, (row) => ({ key: decodeText(storedText(row["name"])), row: rowOf(row) }));
  }

  protected override async remember(tx: Tx, rows: readonly Row[]): Promise<void> {
    const highest = Math.max(...rows.map((row) => integerOf(row["fence"])));
    await this.server.database.query(tx, this.#sql.remember, [highest]);
  }

  protected override batchOf(removed: readonly Row[]): PrunedBatch {
    return pruning.batchOf(removed);
  }

  async #find(key: string): Promise<Sighting> {
    for (;;) {
      // oxlint-disable-next-line no-await-in-loop -- again where the row has changed in between
      const found = await this.#findOnce(key);
      if (found !== undefined) return found;
    }
  }

  async #findOnce(key: string): Promise<Sighting | undefined> {
    const [look, values] = this.#sql.look(key);
    const row = singleRow(await this.alone(look, values));
    const firstFence = Math.max(integerOf(row["now_us"]), integerOf(row["highest_fence"]) + 1);
    if (row["state"] === null) return { row: undefined, firstFence };
    if (row["state"] !== "done") return { row: rowOf(row), firstFence };
    // Under READ UNCOMMITTED it may be rolled back, and its payment with it.
    if ((await this.server.ready()).engine === "mariadb") {
      const [committed] = await this.alone(...this.#sql.lookLocked(key));
      return { row: committed && rowOf(committed), firstFence };
    }
    const seen = rowOf(row);
    const changed = await this.server.change(name, ...this.#sql.confirmDone(key, seen.token));
    return changed === 0 ? undefined : { row: { ...seen, version: seen.version + 1 }, firstFence };
  }
}

/** The fence of the row that a change makes of the seen one; 0 where nobody asks for it. An UPDATE gives none back. */
export function fenceAfter({ raisesFence }: KeyChange, seen: Seen): number {
  if ("states" in seen) return 0;
  return raisesFence === true ? Math.max(seen.fence + 1, seen.nowMs * 1_000) : seen.fence;
}

const texts = ["token", "fingerprint", "reason", "decision"];

export function rowOf(row: Row): SeenRow {
  const read = texts.filter((text) => row[text] !== null).map((text) => [text, storedText(row[text])]);
  return seenRow(
    { ...row, ...Object.fromEntries(read) },
    {
      fence: integerOf(row["fence"]),
      version: integerOf(row["version"]),
      remainingMs: integerOf(row["remaining_ms"]),
      nowMs: Math.floor(integerOf(row["now_us"]) / 1_000),
    },
  );
}
