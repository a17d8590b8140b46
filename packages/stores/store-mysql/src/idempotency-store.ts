import { randomBytes, randomUUID } from "node:crypto";
import type {
  IdempotencyClaim,
  IdempotencyClaimResult,
  IdempotencyDecision,
  IdempotencyListing,
  IdempotencyListQuery,
  IdempotencyOwnership,
  IdempotencyRecord,
  ReleasedKey,
  SqlValue,
} from "@countersign/idempotency";
import {
  damagedCursor,
  decideClaim,
  keyBefore,
  pageOf,
  pruning,
  storedRecords,
  type RemoteIdempotencyStore,
  type Row,
  type KeyRow,
} from "@countersign/idempotency/store";
import { claimStatement } from "./claim-statement.ts";
import type { Engine } from "./engine.ts";
import { idempotencyStatements, pageStatement } from "./idempotency-statements.ts";
import { nameOf, standingOf, storedOf } from "./key-row.ts";
import type { ResolvedMysqlOptions } from "./options.ts";
import { PrunedTable, type PrunedBatch } from "./pruning.ts";
import { isInTransaction } from "./statement-parts.ts";
import { bytesOf, digestOf, hexOf, integerOf, isTrue, singleRow } from "./values.ts";

export interface MysqlIdempotencyStore<Tx> extends RemoteIdempotencyStore<Tx> {
  /**
   * Completes the key inside the transaction `tx` of your library. Rejects when none is open. `lost` also on a done key. Call it first:
   * from then on nobody takes the key over.
   */
  completeIn(tx: Tx, key: string, token: string): Promise<IdempotencyOwnership>;
}

const name = "mysql idempotency store";

type Step = Exclude<keyof ReturnType<typeof idempotencyStatements>, "look" | "lookLocked" | "completeIn">;

interface Seen {
  readonly record: KeyRow | undefined;
  /** The highest fence of a pruned key. */
  readonly floor: number;
}

export class IdempotencyTable<Tx> extends PrunedTable<Tx> implements MysqlIdempotencyStore<Tx> {
  readonly retentionMs: number;

  constructor(engine: Engine<Tx>, options: ResolvedMysqlOptions<Tx>) {
    super(name, engine, options, {
      table: options.names.idempotency,
      isExpired: (now) => `state IN ('done', 'free') AND until_us <= ${now}`,
      columns: ["state", "fence"],
    });
    this.retentionMs = options.retentionMs;
  }

  async claim(key: string, claim: IdempotencyClaim): Promise<IdempotencyClaimResult> {
    this.gate.assertClaim(key, claim);
    // Without a lock: a duplicate does not wait for the transaction of completeIn(). An answer that writes is decided again, by the
    // statement that writes. What was pruned since is no concern: a row outlives by hours whoever has not seen it.
    const { record, floor } = await this.#look(key);
    const decision = record === undefined ? undefined : decideClaim(record, claim);
    if (decision !== undefined && decision.write === undefined) return decision.reply;
    const { token, leaseMs, recovery } = claim;
    const statement = claimStatement(
      {
        idempotency: this.options.names.idempotency,
        now: this.now(),
        mark: randomBytes(16),
        recovery,
        takenAs: "leased",
        leaseMs,
        fenceAbove: floor,
        lockTimeoutMs: this.options.lockTimeoutMs,
      },
      [{ ...claim, key }],
    );
    const row = singleRow(await this.alone(...statement));
    const stored = storedOf(row);
    if (stored.state === "running" && stored.token === token)
      return { status: "acquired", fence: stored.fence };
    return standingOf(row);
  }

  async read(key: string): Promise<IdempotencyRecord | undefined> {
    this.gate.assertKey(key);
    return this.#read(key);
  }

  async heartbeat(key: string, token: string, leaseMs: number): Promise<IdempotencyOwnership> {
    this.gate.assertHeartbeat(key, token, leaseMs);
    return this.#change("heartbeat", key, [bytesOf(token), leaseMs]);
  }

  async complete(key: string, token: string): Promise<IdempotencyOwnership> {
    this.gate.assertOwner(key, token);
    if ((await this.#change("complete", key, [bytesOf(token)])) === "ok") return "ok";
    const record = await this.#read(key);
    return record?.state === "done" && record.token === token ? "ok" : "lost";
  }

  async completeIn(tx: Tx, key: string, token: string): Promise<IdempotencyOwnership> {
    this.gate.assertOwnerIn(key, token);
    const { completeIn } = idempotencyStatements(this.options, this.now());
    const changed = await this.server.query(tx, name, completeIn, [digestOf(key), bytesOf(token)]);
    if (changed.length > 0) return "ok";
    const state = await this.server.query(tx, name, `SELECT ${isInTransaction} AS is_open`, []);
    if (!isTrue(singleRow(state)["is_open"])) {
      throw new Error(
        `${name}: completeIn needs what your library gives to a transaction's work, while it is open`,
      );
    }
    // Not `ok` on a done key, as complete() answers: this transaction would be a second payment.
    return "lost";
  }

  async release(key: string, token: string): Promise<IdempotencyOwnership> {
    this.gate.assertOwner(key, token);
    return this.#change("release", key, [bytesOf(token)]);
  }

  async hold(key: string, token: string, reason: string): Promise<IdempotencyOwnership> {
    this.gate.assertHold(key, token, reason);
    return this.#change("hold", key, [bytesOf(token), bytesOf(reason)]);
  }

  async resolve(
    key: string,
    outcome: "done" | "released",
    decision: IdempotencyDecision,
  ): Promise<"ok" | "not-held"> {
    this.gate.assertResolve(key, outcome, decision);
    const set = [outcome === "done" ? 1 : 0, bytesOf(randomUUID()), outcome, ...entryOf(decision)];
    const changed = await this.#change("resolve", key, [decision.fence, ...set]);
    return changed === "ok" ? "ok" : "not-held";
  }

  async reopen(key: string, decision: IdempotencyDecision): Promise<"ok" | "not-decided"> {
    this.gate.assertReopen(key, decision);
    const set = [bytesOf(randomUUID()), ...entryOf(decision)];
    const changed = await this.#change("reopen", key, [decision.fence, ...set]);
    return changed === "ok" ? "ok" : "not-decided";
  }

  async readReleased(key: string): Promise<ReleasedKey | undefined> {
    this.gate.assertKey(key);
    return storedRecords.releasedOf((await this.#look(key)).record);
  }

  async list(query: IdempotencyListQuery): Promise<IdempotencyListing> {
    this.gate.assertList(query);
    const { state, cursor, limit } = query;
    const digest = keyBefore(name, cursor);
    if (digest !== "" && !/^[0-9a-f]{64}$/.test(digest)) throw damagedCursor(name);
    const text = pageStatement(this.options.names.idempotency, state, this.now());
    // One row more than asked for tells whether another page follows.
    return pageFrom(await this.alone(text, [Buffer.from(digest, "hex"), limit + 1]), limit);
  }

  async #read(key: string): Promise<IdempotencyRecord | undefined> {
    const { record } = await this.#look(key);
    return record === undefined ? undefined : storedRecords.recordOf(record);
  }

  async #look(key: string): Promise<Seen> {
    const { look, lookLocked } = idempotencyStatements(this.options, this.now());
    const row = singleRow(await this.alone(look, [digestOf(key)]));
    const floor = integerOf(row["highest_fence"]);
    // Under READ UNCOMMITTED it may be rolled back, and its payment with it.
    const [seen] = row["state"] === "done" ? await this.alone(lookLocked, [digestOf(key)]) : [row];
    if (seen === undefined || seen["state"] === null) return { record: undefined, floor };
    return { record: storedOf(seen), floor };
  }

  async #change(step: Step, key: string, values: readonly SqlValue[]): Promise<IdempotencyOwnership> {
    const statement = idempotencyStatements(this.options, this.now())[step];
    const changed = await this.alone(statement, [digestOf(key), ...values]);
    return changed.length > 0 ? "ok" : "lost";
  }

  protected override async remember(tx: Tx, rows: readonly Row[]): Promise<void> {
    const highest = Math.max(...rows.map((row) => integerOf(row["fence"])));
    const text = `UPDATE ${this.options.names.schema} SET highest_fence = GREATEST(highest_fence, ?) WHERE id = 1`;
    await this.server.database.query(tx, text, [highest]);
  }

  protected override batchOf(removed: readonly Row[]): PrunedBatch {
    return pruning.batchOf(removed);
  }
}

function pageFrom(rows: readonly Row[], limit: number): IdempotencyListing {
  const names = new Map(rows.map((row) => [hexOf(row["digest"]), nameOf(row)]));
  const keyed = rows.map((row) => ({ ...row, key: hexOf(row["digest"]) }));
  return pageOf(keyed, limit, {
    keyOf: (digest) => names.get(digest) ?? "",
    recordOf: (row) => storedRecords.recordOf(storedOf(row)),
  });
}

function entryOf({ by, note }: IdempotencyDecision): [by: Buffer | null, note: Buffer | null] {
  return [by === undefined ? null : bytesOf(by), note === undefined ? null : bytesOf(note)];
}
