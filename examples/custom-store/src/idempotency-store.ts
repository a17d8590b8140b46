import { randomUUID } from "node:crypto";
import type {
  IdempotencyClaim,
  IdempotencyClaimResult,
  IdempotencyDecision,
  IdempotencyListing,
  IdempotencyListQuery,
  IdempotencyOwnership,
  IdempotencyRecord,
  IdempotencyStore,
  ReleasedKey,
} from "@countersign/idempotency";
import {
  leaseExpired,
  recordOf,
  releasedOf,
  assertTransaction,
  pruneAllRemote,
  startPruning,
  StoreGate,
  type TransactionShape,
} from "@countersign/idempotency/store";
import { decideRow } from "./claim-decision.ts";
import { change, rows, type Executor, type Values } from "./engine.ts";
import { bytesOf, columns, digestOf, seenRow, storedOf, type KeyRow, type SeenRow } from "./key-row.ts";
import { listPage } from "./list-page.ts";
import { pruneBatchSize, removeBatch } from "./prune-keys.ts";
import { factory, type StoreParts } from "./options.ts";

/** What `completeIn` takes: a Connection or PoolConnection of mysql2/promise on which a transaction is open. */
export type MariadbTransaction = Executor;

/** The idempotency store of the guard on MariaDB. */
export interface MariadbIdempotencyStore extends IdempotencyStore<MariadbTransaction> {
  list(query: IdempotencyListQuery): Promise<IdempotencyListing>;
  completeIn(tx: MariadbTransaction, key: string, token: string): Promise<IdempotencyOwnership>;
  close(): void;
}

const name = "mariadb idempotency store";

const transaction: TransactionShape = {
  needs: "the connection on which your transaction is open, as withTransaction() gives it",
  has: ["execute"],
  lacks: { getConnection: "a pool", promise: "a connection of mysql2, not of mysql2/promise" },
  page: "https://github.com/countersign/countersign/tree/main/examples/custom-store#what-completein-takes",
};

export class KeyTable implements MariadbIdempotencyStore {
  readonly retentionMs: number;
  readonly #parts: StoreParts;
  readonly #stopPruning: () => void;
  readonly #gate = new StoreGate(name);

  constructor(parts: StoreParts) {
    this.retentionMs = parts.retentionMs;
    this.#parts = parts;
    this.#stopPruning = startPruning({
      factory,
      intervalMs: parts.pruneIntervalMs,
      batchSize: pruneBatchSize,
      removeBatch: async () => (await removeBatch(parts)).rows,
    });
  }

  // #region claim
  async claim(key: string, claim: IdempotencyClaim): Promise<IdempotencyClaimResult> {
    this.#gate.assertClaim(key, claim);
    // Without a lock: duplicates of a paid key do not queue for its row. An answer that writes is decided again, under the lock.
    const seen = await this.#look(key);
    const looked = seen === undefined ? undefined : decideRow(seen, claim, 0);
    if (looked !== undefined && looked.write === undefined) return looked.answer;
    return this.#parts.engine.transaction(async (connection) => {
      const { row, floor } = await this.#lock(connection, key);
      const { answer, write } = decideRow(row, claim, floor);
      if (write !== undefined) await this.#write(connection, key, write, row.nowUs);
      return answer;
    });
  }
  // #endregion claim

  async read(key: string): Promise<IdempotencyRecord | undefined> {
    this.#gate.assertKey(key);
    const row = await this.#look(key);
    return row === undefined ? undefined : recordOf(storedOf(row));
  }

  // #region step
  async heartbeat(key: string, token: string, leaseMs: number): Promise<IdempotencyOwnership> {
    this.#gate.assertHeartbeat(key, token, leaseMs);
    const set = `until_us = ${this.#parts.clock} + :leaseUs`;
    return this.#update(set, "state = 'run' AND token = :token", key, { token, leaseUs: leaseMs * 1_000 });
  }
  // #endregion step

  async complete(key: string, token: string): Promise<IdempotencyOwnership> {
    this.#gate.assertOwner(key, token);
    if ((await this.#update(this.#ended("done"), isCompletable, key, { token })) === "ok") return "ok";
    // Done is final, so that a look behind the step still tells by whom.
    const record = await this.read(key);
    return record?.state === "done" && record.token === token ? "ok" : "lost";
  }

  // #region complete-in
  async completeIn(tx: MariadbTransaction, key: string, token: string): Promise<IdempotencyOwnership> {
    this.#gate.assertOwnerIn(key, token);
    assertTransaction(name, tx, transaction);
    const { names, time } = this.#parts;
    // The condition is the server's: behind a COMMIT or ROLLBACK that is on its way, `done` would commit alone. The update waits for
    // whoever has the row, and goes by what they have committed, whatever the snapshot of the transaction is.
    const where = `id = :id AND ${isCompletable} AND @@in_transaction = 1`;
    const values = { id: digestOf(key), token: bytesOf(token), ...time() };
    const result = await change(tx, `UPDATE ${names.keys} SET ${this.#ended("done")} WHERE ${where}`, values);
    if (result.affectedRows > 0) return "ok";
    if (!result.isInTransaction) {
      throw new Error(`${name}: completeIn needs the connection on which your transaction is open`);
    }
    // Never `ok` on a key that is done, as complete() is: what this transaction pays would be a second payment.
    return "lost";
  }
  // #endregion complete-in

  async release(key: string, token: string): Promise<IdempotencyOwnership> {
    this.#gate.assertOwner(key, token);
    // What an operator has decided about the key stays as long as a done key: no retry that fails wipes it out.
    const kept = `IF(decision IS NULL, 0, ${this.retentionMs * 1_000})`;
    const set = `state = 'free', until_us = ${this.#parts.clock} + ${kept}`;
    return this.#update(set, "state = 'run' AND token = :token", key, { token });
  }

  async hold(key: string, token: string, reason: string): Promise<IdempotencyOwnership> {
    this.#gate.assertHold(key, token, reason);
    const set = "state = 'held', reason = :reason";
    return this.#update(set, "state = 'run' AND token = :token", key, { token, reason });
  }

  async resolve(
    key: string,
    outcome: "done" | "released",
    decision: IdempotencyDecision,
  ): Promise<"ok" | "not-held"> {
    this.#gate.assertResolve(key, outcome, decision);
    const { clock } = this.#parts;
    // From the left to the right, and each sees what those before it have set: the reason is read before it is emptied.
    const set = `decision = '${outcome}', decision_fence = fence, decision_us = ${clock}, decision_by = :by, decision_note = :note,
  decision_reason = IF(state = 'held', reason, '${leaseExpired}'), reopened_us = NULL, reopened_by = NULL, reopened_note = NULL,
  token = :token, ${this.#ended(outcome === "done" ? "done" : "free")}`;
    // A token that nobody has: no late step of the old owner fits.
    const values = { token: randomUUID(), ...entryOf(decision), fence: decision.fence };
    const isUndecided = `fence = :fence AND (state = 'held' OR (state = 'run' AND until_us <= ${clock}))`;
    const changed = await this.#update(set, isUndecided, key, values);
    return changed === "ok" ? "ok" : "not-held";
  }

  async reopen(key: string, decision: IdempotencyDecision): Promise<"ok" | "not-decided"> {
    this.#gate.assertReopen(key, decision);
    const { clock } = this.#parts;
    // A fence of its own: a decision that is sent again was about the one before.
    const set = `state = 'held', token = :token, fence = fence + 1, reason = decision_reason,
  reopened_us = ${clock}, reopened_by = :by, reopened_note = :note`;
    const isDecided = `fence = :fence AND decision_fence = fence AND state IN ('done', 'free') AND until_us > ${clock}`;
    const values = { token: randomUUID(), ...entryOf(decision), fence: decision.fence };
    const changed = await this.#update(set, isDecided, key, values);
    return changed === "ok" ? "ok" : "not-decided";
  }

  async readReleased(key: string): Promise<ReleasedKey | undefined> {
    this.#gate.assertKey(key);
    const row = await this.#look(key);
    return row === undefined ? undefined : releasedOf(storedOf(row));
  }

  async list(query: IdempotencyListQuery): Promise<IdempotencyListing> {
    this.#gate.assertList(query);
    return listPage(name, this.#parts, query);
  }

  async prune(): Promise<number> {
    this.#gate.assertUsable();
    return pruneAllRemote(pruneBatchSize, () => removeBatch(this.#parts));
  }

  close(): void {
    this.#gate.close();
    this.#stopPruning();
  }

  async #look(key: string): Promise<SeenRow | undefined> {
    const { engine, names, clock, time } = this.#parts;
    const sql = `SELECT ${columns(clock)} FROM ${names.keys} WHERE id = :id`;
    const [row] = await engine.rows(sql, { id: digestOf(key), ...time() });
    return row === undefined ? undefined : seenRow(row);
  }

  // #region lock
  /** The row of the key, made where there is none, which nobody else changes until the transaction ends. */
  async #lock(connection: Executor, key: string): Promise<{ row: SeenRow; floor: number }> {
    const { names, clock, time } = this.#parts;
    const id = digestOf(key);
    const make = `INSERT INTO ${names.keys} (id, name, state, token, fence, fingerprint, reason, until_us)
      VALUES (:id, :name, 'free', '', 0, '', '', 0) ON DUPLICATE KEY UPDATE id = id`;
    await change(connection, make, { id, name: bytesOf(key) });
    // A statement of its own, behind the lock: it sees the floor of whoever has just pruned this key, and its clock is not the time
    // before the wait.
    const look = `SELECT ${columns(clock)}, (SELECT fence FROM ${names.floor}) AS floor FROM ${names.keys} WHERE id = :id`;
    const [row] = await rows(connection, look, { id, ...time() });
    if (row === undefined) throw new Error(`${name}: the row that was made is not there`);
    return { row: seenRow(row), floor: Number(row["floor"]) };
  }
  // #endregion lock

  async #write(connection: Executor, key: string, row: KeyRow, nowUs: number): Promise<void> {
    // First, from the old state: of a row that is over, and that nobody has pruned yet, no decision is known any more.
    const sql = `UPDATE ${this.#parts.names.keys} SET decision = IF(state IN ('done', 'free') AND until_us <= :nowUs, NULL, decision),
  state = :state, token = :token, fence = :fence,
  fingerprint = :fingerprint, reason = :reason, until_us = :untilUs WHERE id = :id`;
    const { state, token, fence, fingerprint, reason, untilUs } = row;
    const texts = { token: bytesOf(token), fingerprint: bytesOf(fingerprint), reason: bytesOf(reason) };
    await change(connection, sql, { id: digestOf(key), state, fence, untilUs, nowUs, ...texts });
  }

  // #region update
  /** One statement that decides and writes. */
  async #update(
    set: string,
    where: string,
    key: string,
    values: Readonly<Record<string, string | number | null>>,
  ): Promise<IdempotencyOwnership> {
    const { engine, names, time } = this.#parts;
    const sql = `UPDATE ${names.keys} SET ${set} WHERE id = :id AND ${where}`;
    const changed = await engine.change(sql, { id: digestOf(key), ...bound(values), ...time() });
    return changed > 0 ? "ok" : "lost";
  }
  // #endregion update

  #ended(state: "done" | "free"): string {
    return `state = '${state}', reason = '', until_us = ${this.#parts.clock} + ${this.retentionMs * 1_000}`;
  }
}

const isCompletable = "token = :token AND state IN ('run', 'held')";

function entryOf({ by, note }: IdempotencyDecision): { by: string | null; note: string | null } {
  return { by: by ?? null, note: note ?? null };
}

function bound(values: Readonly<Record<string, string | number | null>>): Values {
  return Object.fromEntries(
    Object.entries(values).map(([each, value]) => [each, typeof value === "string" ? bytesOf(value) : value]),
  );
}
