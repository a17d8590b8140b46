// Over 200 lines: every step of the contract, in one class over the statements that they share.
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
} from "@countersign/idempotency-guard";
import {
  assertDecision,
  assertDuration,
  assertListQuery,
  assertOpen,
  assertOutcome,
  assertText,
  encodeText,
} from "@countersign/store-core";
import { type Sighting, decideClaim, leaseExpiredReason } from "./claim-decision.ts";
import {
  type SqliteStatement,
  type SqliteTransaction,
  type SqliteValue,
  integerOf,
  singleRow,
} from "./driver.ts";
import { assertSynchronous } from "./durability.ts";
import {
  type IdempotencyStatements,
  lookAt,
  prepareCompletion,
  prepareIdempotency,
  takeWriteLock,
} from "./idempotency-statements.ts";
import { type ReadPage, preparePages, recordOf } from "./listing.ts";
import type { ResolvedOptions } from "./options.ts";
import { pruneAll, pruneBatchSize, pruneInBackground } from "./pruning.ts";
import { assertUsable } from "./store-gate.ts";
import { isInTransaction, withImmediateTransaction } from "./transaction.ts";

/** The idempotency store of the guard on SQLite: every answer is there when the method returns, none is a promise. */
export interface SqliteIdempotencyStore extends IdempotencyStore<SqliteTransaction> {
  readonly retentionMs: number;
  claim(key: string, claim: IdempotencyClaim): IdempotencyClaimResult;
  read(key: string): IdempotencyRecord | undefined;
  heartbeat(key: string, token: string, leaseMs: number): IdempotencyOwnership;
  complete(key: string, token: string): IdempotencyOwnership;
  release(key: string, token: string): IdempotencyOwnership;
  hold(key: string, token: string, reason: string): IdempotencyOwnership;
  resolve(key: string, outcome: "done" | "released", decision: IdempotencyDecision): "ok" | "not-held";
  /** Pages in the order of the keys' bytes. Throws a TypeError on a cursor that is none. */
  list(query: IdempotencyListQuery): IdempotencyListing;
  prune(): number;
  close(): void;
  /**
   * `complete` inside the transaction that the caller has begun on `tx`, which may be the store's connection or another one of
   * the same file; `lost` on a key that is done. A ROLLBACK TO of a savepoint around it takes it back. Throws when no transaction
   * is open there, or when its commits would not be durable.
   */
  completeIn(tx: SqliteTransaction, key: string, token: string): IdempotencyOwnership;
}

const name = "sqlite idempotency store";

export class IdempotencyTable implements SqliteIdempotencyStore {
  readonly retentionMs: number;
  readonly #options: ResolvedOptions;
  readonly #sql: IdempotencyStatements;
  readonly #readPage: ReadPage;
  readonly #lockSql: string;
  readonly #completions = new WeakMap<SqliteTransaction, SqliteStatement>();
  readonly #stopPruning: () => void;
  #closed = false;

  constructor(options: ResolvedOptions) {
    const { database, table, pruneIntervalMs: intervalMs } = options;
    this.retentionMs = options.retentionMs;
    this.#options = options;
    this.#sql = prepareIdempotency(database, table);
    this.#readPage = preparePages(database, table);
    this.#lockSql = takeWriteLock(table);
    this.#completions.set(database, this.#sql.complete);
    this.#stopPruning = pruneInBackground({
      database,
      intervalMs,
      removeBatch: () => this.#removeBatch().length,
    });
  }

  claim(key: string, claim: IdempotencyClaim): IdempotencyClaimResult {
    this.#assertUsable(key, claim.token);
    assertText(name, "fingerprint", claim.fingerprint);
    assertDuration(name, "leaseMs", claim.leaseMs);
    const storedKey = encodeText(key);
    // Most claims of a busy key are duplicates of a paid one: they read and never queue for the write lock.
    const seen = decideClaim(this.#look(storedKey), claim);
    if (seen.action === "answer") return seen.result;
    return withImmediateTransaction(this.#options.database, () => this.#claimLocked(storedKey, claim));
  }

  read(key: string): IdempotencyRecord | undefined {
    this.#assertUsable(key);
    const { row, nowMs } = this.#look(encodeText(key));
    return row === undefined ? undefined : recordOf(row, nowMs);
  }

  heartbeat(key: string, token: string, leaseMs: number): IdempotencyOwnership {
    this.#assertUsable(key, token);
    assertDuration(name, "leaseMs", leaseMs);
    return this.#change(
      this.#sql.heartbeat,
      this.#options.now(),
      leaseMs,
      encodeText(key),
      encodeText(token),
    );
  }

  complete(key: string, token: string): IdempotencyOwnership {
    this.#assertUsable(key, token);
    const { database } = this.#options;
    const { complete, look } = this.#sql;
    return withImmediateTransaction(database, () => {
      if (this.#complete(complete, key, token) === "ok") return "ok";
      const { row, nowMs } = lookAt(look, encodeText(key), this.#options.now());
      return row?.state === "done" && row.token === token && row.untilMs > nowMs ? "ok" : "lost";
    });
  }

  completeIn(tx: SqliteTransaction, key: string, token: string): IdempotencyOwnership {
    assertOpen(name, this.#closed);
    assertText(name, "key", key);
    assertText(name, "token", token);
    // On its own, the update would commit at once, and stay when the caller's payment is rolled back.
    if (!isInTransaction(tx)) {
      throw new Error(`${name}: completeIn needs a connection on which a transaction is open`);
    }
    const complete = this.#completionOn(tx);
    // Takes the write lock where BEGIN has not. libsql leaves a prepared statement that met SQLITE_BUSY running,
    // and every later COMMIT on the connection then fails.
    tx.exec(this.#lockSql);
    // Never `ok` on a key that is done, as complete() is: what the caller's transaction pays would be a second payment.
    return this.#complete(complete, key, token);
  }

  release(key: string, token: string): IdempotencyOwnership {
    this.#assertUsable(key, token);
    const { now, retentionMs } = this.#options;
    return this.#change(this.#sql.release, now(), retentionMs, encodeText(key), encodeText(token));
  }

  hold(key: string, token: string, reason: string): IdempotencyOwnership {
    this.#assertUsable(key, token);
    return this.#change(this.#sql.hold, encodeText(reason), encodeText(key), encodeText(token));
  }

  resolve(key: string, outcome: "done" | "released", decision: IdempotencyDecision): "ok" | "not-held" {
    this.#assertUsable(key);
    assertOutcome(name, outcome);
    assertDecision(name, decision);
    const state = outcome === "done" ? "done" : "free";
    const now = this.#options.now();
    const { retentionMs } = this.#options;
    const attempt = [encodeText(key), decision.fence, now] as const;
    // A token that nobody has: nothing of the old attempt can end the key any more.
    const changed = this.#change(this.#sql.resolve, state, randomUUID(), now, retentionMs, ...attempt);
    return changed === "ok" ? "ok" : "not-held";
  }

  list(query: IdempotencyListQuery): IdempotencyListing {
    assertUsable(name, this.#options.database, this.#closed);
    assertListQuery(name, query);
    return this.#readPage(query, this.#options.now());
  }

  prune(): number {
    assertUsable(name, this.#options.database, this.#closed);
    let done = 0;
    pruneAll(() => {
      const states = this.#removeBatch();
      done += states.filter((state) => state === "done").length;
      return states.length;
    });
    return done;
  }

  close(): void {
    this.#closed = true;
    this.#stopPruning();
  }

  #claimLocked(storedKey: string, claim: IdempotencyClaim): IdempotencyClaimResult {
    const sighting = this.#look(storedKey);
    const decision = decideClaim(sighting, claim);
    if (decision.action === "answer") return decision.result;
    if (decision.action === "hold") {
      this.#sql.holdExpired.run(leaseExpiredReason, storedKey);
      return { status: "held", fingerprint: decision.row.fingerprint, reason: leaseExpiredReason };
    }
    if (decision.action === "shorten") {
      this.#sql.shorten.run(decision.untilMs, storedKey);
      return decision.result;
    }
    const { fence, fingerprint } = decision;
    const untilMs = sighting.nowMs + claim.leaseMs;
    this.#sql.take.run(storedKey, encodeText(claim.token), fence, encodeText(fingerprint), untilMs);
    return { status: "acquired", fence };
  }

  #complete(complete: SqliteStatement, key: string, token: string): IdempotencyOwnership {
    const { now, retentionMs } = this.#options;
    return ownership(complete.run(now(), retentionMs, encodeText(key), encodeText(token)));
  }

  #completionOn(tx: SqliteTransaction): SqliteStatement {
    let complete = this.#completions.get(tx);
    if (complete === undefined) {
      assertSynchronous(`${name}: completeIn`, tx);
      complete = prepareCompletion(tx, this.#options.table);
      this.#completions.set(tx, complete);
    }
    return complete;
  }

  // Returns the states of the rows that it removed: done, or free, which no caller knows of.
  #removeBatch(): unknown[] {
    return withImmediateTransaction(this.#options.database, () => {
      const removed = this.#sql.removeExpired.all(this.#options.now(), pruneBatchSize).map(singleRow);
      const fences = removed.map((row) => integerOf(row["fence"]));
      if (fences.length > 0) this.#sql.raiseFenceFloor.run(Math.max(...fences));
      return removed.map((row) => row["state"]);
    });
  }

  #change(statement: SqliteStatement, ...parameters: SqliteValue[]): IdempotencyOwnership {
    return ownership(withImmediateTransaction(this.#options.database, () => statement.run(...parameters)));
  }

  #look(storedKey: string): Sighting {
    return lookAt(this.#sql.look, storedKey, this.#options.now());
  }

  #assertUsable(key: string, token?: string): void {
    assertUsable(name, this.#options.database, this.#closed);
    assertText(name, "key", key);
    if (token !== undefined) assertText(name, "token", token);
  }
}

function ownership({ changes }: { readonly changes: number | bigint }): IdempotencyOwnership {
  return Number(changes) > 0 ? "ok" : "lost";
}
