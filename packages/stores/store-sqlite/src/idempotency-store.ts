import { randomUUID } from "node:crypto";
import { pageOf as pageAt } from "@countersign/core/door";
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
  assertTransaction,
  decideClaim,
  decodeText,
  encodeText,
  keyBefore,
  leaseExpired,
  pageOf,
  pruning,
  storedRecords,
} from "@countersign/idempotency/store";
import {
  type Sighting,
  type SqliteStatement,
  type SqliteDatabase,
  type SqliteValue,
  integerOf,
  singleRow,
  isInTransaction,
  lookAt,
  storedAt,
  takeRow,
  withImmediateTransaction,
} from "./connection.ts";
import { assertSynchronous } from "./durability.ts";
import {
  type IdempotencyStatements,
  prepareCompletion,
  prepareIdempotency,
  takeWriteLock,
} from "./idempotency-statements.ts";
import { factoryName, type ResolvedSqliteOptions } from "./options.ts";
import { PrunedTable, pruneBatchSize, type PrunedBatch } from "./pruning.ts";

/** The idempotency store on SQLite. Every method answers at once, without a promise. */
export interface SqliteIdempotencyStore extends IdempotencyStore<SqliteDatabase> {
  readonly retentionMs: number;
  claim(key: string, claim: IdempotencyClaim): IdempotencyClaimResult;
  read(key: string): IdempotencyRecord | undefined;
  heartbeat(key: string, token: string, leaseMs: number): IdempotencyOwnership;
  complete(key: string, token: string): IdempotencyOwnership;
  release(key: string, token: string): IdempotencyOwnership;
  hold(key: string, token: string, reason: string): IdempotencyOwnership;
  resolve(key: string, outcome: "done" | "released", decision: IdempotencyDecision): "ok" | "not-held";
  reopen(key: string, decision: IdempotencyDecision): "ok" | "not-decided";
  readReleased(key: string): ReleasedKey | undefined;
  /** Pages in the order of the keys' bytes. Throws a TypeError on a cursor that is none. */
  list(query: IdempotencyListQuery): IdempotencyListing;
  prune(): number;
  close(): void;
  /**
   * Completes the key inside the transaction that is open on `tx`, the store's connection or another one of the file. `lost` on a done key.
   * ROLLBACK TO a savepoint takes it back. Throws when no transaction is open there, or when its commits would not be durable.
   */
  completeIn(tx: SqliteDatabase, key: string, token: string): IdempotencyOwnership;
}

const name = "sqlite idempotency store";

const neededTransaction: Parameters<typeof assertTransaction>[2] = {
  needs: "the connection on which your transaction is open, as withImmediateTransaction() gives it",
  has: ["exec", "prepare"],
  lacks: {},
  page: pageAt("reference/packages/store-sqlite#what-completein-takes"),
};

export class IdempotencyTable extends PrunedTable implements SqliteIdempotencyStore {
  readonly retentionMs: number;
  readonly #sql: IdempotencyStatements;
  readonly #lockSql: string;
  readonly #completions = new WeakMap<SqliteDatabase, SqliteStatement>();

  constructor(options: ResolvedSqliteOptions) {
    super(name, factoryName, options);
    const { database, table } = options;
    this.retentionMs = options.retentionMs;
    this.#sql = prepareIdempotency(database, table);
    this.#lockSql = takeWriteLock(table);
    this.#completions.set(database, this.#sql.complete);
  }

  claim(key: string, claim: IdempotencyClaim): IdempotencyClaimResult {
    this.gate.assertClaim(key, claim);
    const storedKey = encodeText(key);
    // Most claims of a busy key are duplicates of a paid one: they read and never queue for the write lock.
    const seen = decideClaim(this.#look(storedKey).stored, claim);
    if (seen.action === "answer") return seen.result;
    return withImmediateTransaction(this.options.database, () => this.#claimLocked(storedKey, claim));
  }

  read(key: string): IdempotencyRecord | undefined {
    this.gate.assertKey(key);
    return this.#read(key);
  }

  heartbeat(key: string, token: string, leaseMs: number): IdempotencyOwnership {
    this.gate.assertHeartbeat(key, token, leaseMs);
    const owner = [encodeText(key), encodeText(token)] as const;
    return this.#change(this.#sql.heartbeat, this.options.now(), leaseMs, ...owner);
  }

  complete(key: string, token: string): IdempotencyOwnership {
    this.gate.assertOwner(key, token);
    return withImmediateTransaction(this.options.database, () => {
      if (this.#complete(this.#sql.complete, key, token) === "ok") return "ok";
      const record = this.#read(key);
      return record?.state === "done" && record.token === token ? "ok" : "lost";
    });
  }

  completeIn(tx: SqliteDatabase, key: string, token: string): IdempotencyOwnership {
    this.gate.assertOwnerIn(key, token);
    assertTransaction(name, tx, neededTransaction);
    // On its own, the update would commit at once, and stay when the caller's payment is rolled back.
    if (!isInTransaction(tx)) {
      throw new Error(`${name}: completeIn needs a connection on which a transaction is open`);
    }
    const complete = this.#completionOn(tx);
    // Takes the write lock where BEGIN has not: in libsql a prepared statement that met SQLITE_BUSY would make later COMMITs fail.
    tx.exec(this.#lockSql);
    // Not `ok` on a done key, as complete() answers: what the caller's transaction pays would be a second payment.
    return this.#complete(complete, key, token);
  }

  release(key: string, token: string): IdempotencyOwnership {
    this.gate.assertOwner(key, token);
    const { now, retentionMs } = this.options;
    return this.#change(this.#sql.release, now(), retentionMs, encodeText(key), encodeText(token));
  }

  hold(key: string, token: string, reason: string): IdempotencyOwnership {
    this.gate.assertHold(key, token, reason);
    return this.#change(this.#sql.hold, encodeText(reason), encodeText(key), encodeText(token));
  }

  resolve(key: string, outcome: "done" | "released", decision: IdempotencyDecision): "ok" | "not-held" {
    this.gate.assertResolve(key, outcome, decision);
    const state = outcome === "done" ? "done" : "free";
    const { now, retentionMs } = this.options;
    const nowMs = now();
    const attempt = [encodeText(key), decision.fence, nowMs] as const;
    // A token that nobody has: nothing of the old attempt can end the key any more.
    const settled = [state, randomUUID(), nowMs, retentionMs] as const;
    const kept = [outcome, nowMs, ...entryOf(decision)] as const;
    return this.#change(this.#sql.resolve, ...settled, ...kept, ...attempt) === "ok" ? "ok" : "not-held";
  }

  reopen(key: string, decision: IdempotencyDecision): "ok" | "not-decided" {
    this.gate.assertReopen(key, decision);
    const nowMs = this.options.now();
    const attempt = [encodeText(key), decision.fence, nowMs] as const;
    const changed = this.#change(this.#sql.reopen, randomUUID(), nowMs, ...entryOf(decision), ...attempt);
    return changed === "ok" ? "ok" : "not-decided";
  }

  readReleased(key: string): ReleasedKey | undefined {
    this.gate.assertKey(key);
    return storedRecords.releasedOf(this.#look(encodeText(key)).stored);
  }

  list(query: IdempotencyListQuery): IdempotencyListing {
    this.gate.assertList(query);
    const { state, cursor, limit } = query;
    const { live, done } = this.#sql.pages;
    const now = this.options.now();
    // One row more tells whether another page follows.
    const page = [keyBefore(name, cursor), limit + 1];
    const rows = state === "done" ? done.all(now, now, ...page) : live.all(now, state, ...page);
    return pageOf(rows.map(singleRow), limit, {
      keyOf: decodeText,
      recordOf: (row) => storedRecords.recordOf(storedAt(row, integerOf(row["now_ms"]))),
    });
  }

  #claimLocked(storedKey: string, claim: IdempotencyClaim): IdempotencyClaimResult {
    const sighting = this.#look(storedKey);
    const untilMs = sighting.nowMs + claim.leaseMs;
    const decision = decideClaim(sighting.stored, claim);
    if (decision.action === "take") {
      const { token, fingerprint } = claim;
      const fence = takeRow(this.#sql.take, storedKey, sighting, {
        state: "running",
        token,
        fingerprint,
        untilMs,
      });
      return { status: "acquired", fence };
    }
    if (decision.action === "lease") this.#sql.lease.run(untilMs, storedKey);
    if (decision.action === "hold") this.#sql.holdNow.run(leaseExpired, storedKey);
    return decision.result;
  }

  #complete(complete: SqliteStatement, key: string, token: string): IdempotencyOwnership {
    const { now, retentionMs } = this.options;
    return ownership(complete.run(now(), retentionMs, encodeText(key), encodeText(token)));
  }

  #completionOn(tx: SqliteDatabase): SqliteStatement {
    let complete = this.#completions.get(tx);
    if (complete === undefined) {
      assertSynchronous(`${name}: completeIn`, tx);
      complete = prepareCompletion(tx, this.options.table);
      this.#completions.set(tx, complete);
    }
    return complete;
  }

  protected removeBatch(): PrunedBatch {
    return withImmediateTransaction(this.options.database, () => {
      const removed = this.#sql.removeExpired.all(this.options.now(), pruneBatchSize).map(singleRow);
      const fences = removed.map((row) => integerOf(row["fence"]));
      if (fences.length > 0) this.#sql.raiseFenceFloor.run(Math.max(...fences));
      return pruning.batchOf(removed);
    });
  }

  #change(statement: SqliteStatement, ...parameters: SqliteValue[]): IdempotencyOwnership {
    return ownership(withImmediateTransaction(this.options.database, () => statement.run(...parameters)));
  }

  #look(storedKey: string): Sighting {
    return lookAt(this.#sql.look, storedKey, this.options.now());
  }

  #read(key: string): IdempotencyRecord | undefined {
    const { stored } = this.#look(encodeText(key));
    return stored === undefined ? undefined : storedRecords.recordOf(stored);
  }
}

function ownership({ changes }: { readonly changes: number | bigint }): IdempotencyOwnership {
  return Number(changes) > 0 ? "ok" : "lost";
}

function entryOf({ by, note }: IdempotencyDecision): [by: string | null, note: string | null] {
  return [by === undefined ? null : encodeText(by), note === undefined ? null : encodeText(note)];
}
