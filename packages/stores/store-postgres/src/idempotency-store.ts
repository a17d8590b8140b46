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
  ReleasedKey,
} from "@countersign/idempotency";
import {
  assertTransaction,
  decideClaim,
  decodeText,
  encodeText,
  keyBefore,
  pageOf,
  pruning,
  storedRecords,
  StoreGate,
  type RemoteIdempotencyStore,
  type Row,
  type KeyRow,
} from "@countersign/idempotency/store";
import type { Engine } from "./engine.ts";
import { inTransaction } from "./errors.ts";
import {
  type IdempotencyStatements,
  idempotencyStatements,
  pageStatement,
} from "./idempotency-statements.ts";
import type { ResolvedPostgresOptions } from "./options.ts";
import { PrunedTable, type PrunedBatch } from "./pruning.ts";
import { type PostgresTransaction, integerOf, millisecondsOf, singleRow } from "./queryable.ts";
import { timed } from "./statement-parts.ts";
import { decodeKey, encodeKey } from "./stored-key.ts";

export interface PostgresIdempotencyStore extends RemoteIdempotencyStore<PostgresTransaction> {
  /**
   * Completes the key inside the transaction that is open on `tx`, a client of the same database. Rejects when none is open. `lost` also
   * on a done key. Makes the commit durable where synchronous_commit is off. Call it first: from then on nobody takes the key over.
   */
  completeIn(tx: PostgresTransaction, key: string, token: string): Promise<IdempotencyOwnership>;
}

const name = "postgres idempotency store";
// An attempt fails only when another claim got the key and gave it back meanwhile.
const maxClaimAttempts = 20;

const neededTransaction: Parameters<typeof assertTransaction>[2] = {
  needs: "the client on which your transaction is open, as withPostgresTransaction() gives it",
  has: ["query"],
  lacks: { totalCount: "a pool" },
  page: pageAt("reference/packages/store-postgres#what-completein-takes"),
};

export class IdempotencyTable extends PrunedTable implements PostgresIdempotencyStore {
  protected readonly gate: StoreGate = new StoreGate(name);
  readonly retentionMs: number;
  readonly #sql: IdempotencyStatements;

  constructor(engine: Engine, options: ResolvedPostgresOptions) {
    const sql = idempotencyStatements(options);
    super(name, engine, options, sql.removeExpired);
    this.retentionMs = options.retentionMs;
    this.#sql = sql;
  }

  async claim(key: string, claim: IdempotencyClaim): Promise<IdempotencyClaimResult> {
    this.gate.assertClaim(key, claim);
    for (let attempt = 1; attempt <= maxClaimAttempts; attempt++) {
      // oxlint-disable-next-line no-await-in-loop -- each attempt goes by what the one before has found
      const result = await this.#tryClaim(key, claim);
      if (result !== undefined) return result;
    }
    throw new Error(
      `${name}: the key could not be taken in ${maxClaimAttempts} attempts: it changed hands during each, or ${inTransaction}`,
    );
  }

  async read(key: string): Promise<IdempotencyRecord | undefined> {
    this.gate.assertKey(key);
    return this.#read(key);
  }

  async heartbeat(key: string, token: string, leaseMs: number): Promise<IdempotencyOwnership> {
    this.gate.assertHeartbeat(key, token, leaseMs);
    return this.#change(this.#sql.heartbeat, key, encodeText(token), leaseMs);
  }

  async complete(key: string, token: string): Promise<IdempotencyOwnership> {
    this.gate.assertOwner(key, token);
    if ((await this.#change(this.#sql.complete, key, encodeText(token))) === "ok") return "ok";
    const record = await this.#read(key);
    return record?.state === "done" && record.token === token ? "ok" : "lost";
  }

  async completeIn(tx: PostgresTransaction, key: string, token: string): Promise<IdempotencyOwnership> {
    this.gate.assertOwnerIn(key, token);
    assertTransaction(name, tx, neededTransaction);
    const first = await this.#completeIn(tx, key, token, null);
    if (first["is_completed"] === true) return "ok";
    // Lost, or the first step of a transaction that the caller has begun with a plain BEGIN.
    await this.server.runIn(tx, name, this.#sql.beginToWrite, []);
    const second = await this.#completeIn(tx, key, token, first["transaction"]);
    if (second["is_completed"] === true) return "ok";
    if (second["transaction"] !== first["transaction"]) {
      throw new Error(
        `${name}: completeIn needs a client on which a transaction is open: BEGIN, and pass the client that began it`,
      );
    }
    // Not `ok` on a done key, as complete() answers: this transaction would be a second payment.
    return "lost";
  }

  async release(key: string, token: string): Promise<IdempotencyOwnership> {
    this.gate.assertOwner(key, token);
    return this.#change(this.#sql.release, key, encodeText(token));
  }

  async hold(key: string, token: string, reason: string): Promise<IdempotencyOwnership> {
    this.gate.assertHold(key, token, reason);
    const values = [encodeKey(key), encodeText(token), encodeText(reason)];
    return ownershipOf(await this.server.run(name, this.#sql.hold, values));
  }

  async resolve(
    key: string,
    outcome: "done" | "released",
    decision: IdempotencyDecision,
  ): Promise<"ok" | "not-held"> {
    this.gate.assertResolve(key, outcome, decision);
    const values = [outcome === "done", randomUUID(), decision.fence, ...entryOf(decision)];
    const changed = await this.#change(this.#sql.resolve, key, ...values);
    return changed === "ok" ? "ok" : "not-held";
  }

  async reopen(key: string, decision: IdempotencyDecision): Promise<"ok" | "not-decided"> {
    this.gate.assertReopen(key, decision);
    const values = [decision.fence, randomUUID(), ...entryOf(decision)];
    const changed = await this.#change(this.#sql.reopen, key, ...values);
    return changed === "ok" ? "ok" : "not-decided";
  }

  async readReleased(key: string): Promise<ReleasedKey | undefined> {
    this.gate.assertKey(key);
    return storedRecords.releasedOf(await this.#look(key));
  }

  async list(query: IdempotencyListQuery): Promise<IdempotencyListing> {
    this.gate.assertList(query);
    const { state, cursor, limit } = query;
    // One row more than asked for tells whether another page follows.
    const rows = await this.run(pageStatement(this.options, state), keyBefore(name, cursor), limit + 1);
    // A done key can end between the condition and the column: each reads the clock.
    return pageOf(rows, limit, {
      keyOf: decodeKey,
      recordOf: (row) => storedRecords.recordOf(storedOf(row)),
    });
  }

  /** Only in `transaction`, if given: once that has ended, `done` could commit in somebody else's, and the payout not at all. */
  async #completeIn(tx: PostgresTransaction, key: string, token: string, transaction: unknown): Promise<Row> {
    const values = timed(this.options, [encodeKey(key), encodeText(token), transaction]);
    return singleRow(await this.server.runIn(tx, name, this.#sql.completeIn, values));
  }

  /** Undefined when the key changed hands between two steps. */
  async #tryClaim(key: string, claim: IdempotencyClaim): Promise<IdempotencyClaimResult | undefined> {
    const { token, fingerprint, leaseMs, recovery } = claim;
    const values = [encodeText(token), encodeText(fingerprint), leaseMs];
    const [inserted] = await this.#run(this.#sql.insert, key, ...values);
    if (inserted !== undefined) return claimedOf(inserted);
    // A statement of its own sees what others have committed since the first one's snapshot.
    const seen = await this.#look(key);
    if (seen === undefined) return undefined;
    // The statement that writes decides.
    const decision = decideClaim(seen, claim);
    if (decision.write === undefined) return decision.reply;
    // Whatever is not clearly `rerun` leaves an expired run to an operator.
    const [taken] = await this.#run(this.#sql.takeOver, key, ...values, recovery !== "rerun");
    return taken === undefined ? undefined : claimedOf(taken);
  }

  async #read(key: string): Promise<IdempotencyRecord | undefined> {
    const stored = await this.#look(key);
    return stored === undefined ? undefined : storedRecords.recordOf(stored);
  }

  async #look(key: string): Promise<KeyRow | undefined> {
    const [row] = await this.#run(this.#sql.look, key);
    // What was read may never be committed: to answer `done` by it could lose a payment.
    if (row !== undefined && row["is_alone"] !== true) throw new Error(`${name}: ${inTransaction}`);
    return row === undefined ? undefined : storedOf(row);
  }

  #run(statement: string, key: string, ...values: unknown[]): Promise<readonly Row[]> {
    return this.run(statement, encodeKey(key), ...values);
  }

  async #change(statement: string, key: string, ...values: unknown[]): Promise<IdempotencyOwnership> {
    return ownershipOf(await this.#run(statement, key, ...values));
  }

  protected override batchOf(removed: readonly Row[]): PrunedBatch {
    return pruning.batchOf(removed);
  }
}

function storedOf(row: Row): KeyRow {
  return storedRecords.ofRow(row, {
    fence: integerOf(row["fence"]),
    remainingMs: millisecondsOf(row["remaining_seconds"]),
    integerOf,
  });
}

/** Answers a claim by the row that it wrote: it has the key, it cut another owner's lease, or it held an expired run. */
function claimedOf(row: Row): IdempotencyClaimResult {
  const isRun = row["state"] === "running";
  if (isRun && row["is_own"] === true) return { status: "acquired", fence: integerOf(row["fence"]) };
  const fingerprint = decodeText(String(row["fingerprint"]));
  if (isRun) {
    return { status: "in-flight", fingerprint, remainingMs: millisecondsOf(row["remaining_seconds"]) };
  }
  return { status: "held", fingerprint, reason: decodeText(String(row["reason"])) };
}

function ownershipOf(changed: readonly Row[]): IdempotencyOwnership {
  return changed.length > 0 ? "ok" : "lost";
}

function entryOf({ by, note }: IdempotencyDecision): [by: string | null, note: string | null] {
  return [by === undefined ? null : encodeText(by), note === undefined ? null : encodeText(note)];
}
