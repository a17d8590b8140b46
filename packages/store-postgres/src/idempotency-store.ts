import type {
  IdempotencyClaim,
  IdempotencyClaimResult,
  IdempotencyListing,
  IdempotencyListQuery,
  IdempotencyOwnership,
  IdempotencyRecord,
  IdempotencyStore,
} from "@countersign/idempotency-guard";
import {
  assertDuration,
  assertListQuery,
  assertOpen,
  assertOutcome,
  assertText,
  encodeText,
  startPruning,
} from "@countersign/store-core";
import type { Engine } from "./engine.ts";
import { inTransaction, noActiveTransaction, sqlStateOf } from "./errors.ts";
import { type IdempotencyStatements, idempotencyStatements } from "./idempotency-statements.ts";
import { type KeyRow, answerTo, claimedOf, keyRow, recordOf } from "./key-row.ts";
import { pageOf, pageParameters, pageStatement } from "./listing.ts";
import { type ResolvedOptions, dayMs, factory } from "./options.ts";
import { pruneAll } from "./prune-all.ts";
import { type PostgresTransaction, type Row, assertQueryable } from "./queryable.ts";
import { encodeKey } from "./stored-key.ts";

/** The idempotency store of the guard on PostgreSQL. */
export interface PostgresIdempotencyStore extends IdempotencyStore<PostgresTransaction> {
  readonly retentionMs: number;
  claim(key: string, claim: IdempotencyClaim): Promise<IdempotencyClaimResult>;
  read(key: string): Promise<IdempotencyRecord | undefined>;
  heartbeat(key: string, token: string, leaseMs: number): Promise<IdempotencyOwnership>;
  complete(key: string, token: string): Promise<IdempotencyOwnership>;
  release(key: string, token: string): Promise<IdempotencyOwnership>;
  hold(key: string, token: string, reason: string): Promise<IdempotencyOwnership>;
  resolve(key: string, outcome: "done" | "released"): Promise<"ok" | "not-held">;
  list(query: IdempotencyListQuery): Promise<IdempotencyListing>;
  /** Removes all done keys past their retention. Returns how many. */
  prune(): Promise<number>;
  /** Ends the pruning timer; the pool stays open. A later call throws. */
  close(): void;
  /**
   * `complete` inside the transaction that the caller has begun on `tx`, a client of the same database. Rejects when no
   * transaction is open there. Makes the commit durable where synchronous_commit is off.
   */
  completeIn(tx: PostgresTransaction, key: string, token: string): Promise<IdempotencyOwnership>;
}

const name = "postgres idempotency store";
// An attempt comes to nothing only when another claim got the key and gave it back meanwhile.
const maxClaimAttempts = 20;

const needsTransaction = `${name}: completeIn needs a client on which a transaction is open`;

// A released key is remembered for its fence, longer than any claim can be under way that has not seen the release.
const fenceMemoryMs = dayMs;

export class IdempotencyTable implements PostgresIdempotencyStore {
  readonly retentionMs: number;
  readonly #engine: Engine;
  readonly #options: ResolvedOptions;
  readonly #sql: IdempotencyStatements;
  readonly #stopPruning: () => void;
  #closed = false;

  constructor(engine: Engine, options: ResolvedOptions) {
    this.retentionMs = options.retentionMs;
    this.#engine = engine;
    this.#options = options;
    this.#sql = idempotencyStatements(options);
    this.#stopPruning = startPruning({
      factory,
      intervalMs: options.pruneIntervalMs,
      removeBatch: async () => (await this.#removeBatch()).length,
    });
  }

  async claim(key: string, claim: IdempotencyClaim): Promise<IdempotencyClaimResult> {
    this.#assertCall(key, claim.token);
    assertText(name, "fingerprint", claim.fingerprint);
    assertDuration(name, "leaseMs", claim.leaseMs);
    const storedKey = encodeKey(key);
    for (let attempt = 1; attempt <= maxClaimAttempts; attempt++) {
      // Most claims of a busy key are duplicates of a paid one: they read, and neither lock nor write.
      // oxlint-disable-next-line no-await-in-loop -- each attempt goes by what the one before has found
      const seen = await this.#look(storedKey);
      const answer = answerTo(seen, claim);
      if (answer !== undefined) return answer;
      // oxlint-disable-next-line no-await-in-loop
      const [written] = await this.#take(storedKey, claim, seen !== undefined);
      if (written !== undefined) return claimedOf(written);
      // Somebody else was faster. A second statement sees what they committed, this one's snapshot does not.
    }
    throw new Error(
      `${name}: the key could not be taken in ${maxClaimAttempts} attempts: it changed hands during each, or ${inTransaction}`,
    );
  }

  async read(key: string): Promise<IdempotencyRecord | undefined> {
    this.#assertCall(key);
    return recordOf(await this.#look(encodeKey(key)));
  }

  async heartbeat(key: string, token: string, leaseMs: number): Promise<IdempotencyOwnership> {
    this.#assertCall(key, token);
    assertDuration(name, "leaseMs", leaseMs);
    return this.#change(this.#sql.heartbeat, key, [encodeText(token), this.#now(), leaseMs]);
  }

  async complete(key: string, token: string): Promise<IdempotencyOwnership> {
    this.#assertCall(key, token);
    const completed = await this.#change(this.#sql.complete, key, this.#completion(token));
    return completed === "ok" || isDoneBy(await this.#look(encodeKey(key)), token) ? "ok" : "lost";
  }

  async completeIn(tx: PostgresTransaction, key: string, token: string): Promise<IdempotencyOwnership> {
    this.#assertCall(key, token);
    assertQueryable(tx, needsTransaction);
    const storedKey = encodeKey(key);
    const values = [storedKey, ...this.#completion(token)];
    const complete = (): Promise<readonly Row[]> =>
      this.#engine.runIn(tx, name, this.#sql.completeIn, values);
    if ((await complete()).length > 0) return "ok";
    // Lost, or the first step of a transaction that has not written.
    await this.#engine.runIn(tx, name, this.#sql.beginToWrite, []);
    if ((await complete()).length > 0) return "ok";
    await this.#assertTransaction(tx);
    const [seen] = await this.#engine.runIn(tx, name, this.#sql.look, [storedKey, this.#now()]);
    return isDoneBy(keyRow(seen), token) ? "ok" : "lost";
  }

  async release(key: string, token: string): Promise<IdempotencyOwnership> {
    this.#assertCall(key, token);
    return this.#change(this.#sql.release, key, [encodeText(token), this.#now(), fenceMemoryMs]);
  }

  async hold(key: string, token: string, reason: string): Promise<IdempotencyOwnership> {
    this.#assertCall(key, token);
    assertText(name, "reason", reason);
    return this.#change(this.#sql.hold, key, [encodeText(token), encodeText(reason)]);
  }

  async resolve(key: string, outcome: "done" | "released"): Promise<"ok" | "not-held"> {
    this.#assertCall(key);
    assertOutcome(name, outcome);
    const [state, rememberedMs] = outcome === "done" ? ["done", this.retentionMs] : ["free", fenceMemoryMs];
    const changed = await this.#change(this.#sql.resolve, key, [state, this.#now(), rememberedMs]);
    return changed === "ok" ? "ok" : "not-held";
  }

  async list(query: IdempotencyListQuery): Promise<IdempotencyListing> {
    assertOpen(name, this.#closed);
    assertListQuery(name, query);
    const statement = pageStatement(this.#options, query.state);
    const rows = await this.#engine.run(name, statement, pageParameters(name, query, this.#now()));
    return pageOf(rows, query.limit);
  }

  async prune(): Promise<number> {
    assertOpen(name, this.#closed);
    let done = 0;
    await pruneAll(async () => {
      const removed = await this.#removeBatch();
      done += removed.filter((row) => row["state"] === "done").length;
      return removed.length;
    });
    return done;
  }

  close(): void {
    this.#closed = true;
    this.#stopPruning();
  }

  /** Throws unless a transaction is open on `tx`: the caller learns of the mistake, instead of a key that seems lost. */
  async #assertTransaction(tx: PostgresTransaction): Promise<void> {
    try {
      await this.#engine.runIn(tx, name, this.#sql.requireTransaction, []);
    } catch (error) {
      if (sqlStateOf(error) !== noActiveTransaction) throw error;
      throw new Error(`${needsTransaction}: BEGIN, and pass the client that began it, not the pool`, {
        cause: error,
      });
    }
  }

  async #look(storedKey: string): Promise<KeyRow | undefined> {
    const [row] = await this.#engine.run(name, this.#sql.look, [storedKey, this.#now()]);
    // What was read may never be committed: to answer `done` by it could lose a payment.
    if (row !== undefined && row["is_alone"] !== true) throw new Error(`${name}: ${inTransaction}`);
    return keyRow(row);
  }

  #take(storedKey: string, claim: IdempotencyClaim, isThere: boolean): Promise<readonly Row[]> {
    const { token, fingerprint, leaseMs, recovery } = claim;
    const values = [storedKey, encodeText(token), encodeText(fingerprint), this.#now(), leaseMs];
    if (!isThere) return this.#engine.run(name, this.#sql.insert, values);
    // Whatever is not clearly `rerun` leaves an expired run to an operator.
    return this.#engine.run(name, this.#sql.takeOver, [...values, recovery !== "rerun"]);
  }

  async #change(statement: string, key: string, values: unknown[]): Promise<IdempotencyOwnership> {
    const changed = await this.#engine.run(name, statement, [encodeKey(key), ...values]);
    return changed.length > 0 ? "ok" : "lost";
  }

  #completion(token: string): unknown[] {
    return [encodeText(token), this.#now(), this.retentionMs];
  }

  #removeBatch(): Promise<readonly Row[]> {
    return this.#engine.run(name, this.#sql.removeExpired, [this.#now()]);
  }

  #now(): string | null {
    return this.#options.now();
  }

  #assertCall(key: string, token?: string): void {
    assertOpen(name, this.#closed);
    assertText(name, "key", key);
    if (token !== undefined) assertText(name, "token", token);
  }
}

function isDoneBy(row: KeyRow | undefined, token: string): boolean {
  return row?.state === "done" && row.token === token && row.remainingMs > 0;
}
