import type { IdempotencyClaim, KeptDecision } from "@countersign/idempotency";
import type { PostgresIdempotencyStore } from "../dist/idempotency-store.js";
import {
  type PostgresStores,
  createPostgresStores,
  migratePostgres,
  withPostgresTransaction,
} from "@countersign/store-postgres";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import * as fc from "fast-check";
import { Pool } from "pg";
import { isolatedName, postgresUrl } from "@countersign/test-support/servers/engines.ts";
import { dayMs, testClock } from "./connections.ts";
import { fuzzRuns } from "@countersign/test-support/runs/fuzz-runs.ts";

const leaseMs = 1000;
const onPostgres = postgresUrl === undefined ? describe.skip : describe;

interface ModelRow {
  state: "run" | "held" | "done" | "absent";
  token: string;
  fence: number;
  fingerprint: string;
  reason: string;
  untilMs: number;
  decision?: KeptDecision | undefined;
}

/** The state machine of the store contract, written again in the plainest way. */
class Model {
  readonly rows = new Map<string, ModelRow>();
  nowMs = 0;

  at(key: string): ModelRow {
    let row = this.rows.get(key);
    if (row === undefined) {
      row = { state: "absent", token: "", fence: 0, fingerprint: "", reason: "", untilMs: 0 };
      this.rows.set(key, row);
    }
    if (row.state === "done" && row.untilMs <= this.nowMs) row.state = "absent";
    if (row.state === "absent" && row.untilMs <= this.nowMs) row.decision = undefined;
    return row;
  }

  /** `fence`: what the store gave, which the model only checks to be higher. */
  claim(key: string, claim: IdempotencyClaim, fence: number): unknown {
    const row = this.at(key);
    const { fingerprint, reason } = row;
    if (row.state === "done") return { status: "done", fingerprint };
    if (row.state === "held") return { status: "held", fingerprint, reason };
    if (row.state === "run" && row.token === claim.token) {
      row.untilMs = this.nowMs + claim.leaseMs;
      return { status: "acquired", fence: row.fence };
    }
    if (row.state === "run" && row.untilMs > this.nowMs) {
      row.untilMs = Math.min(row.untilMs, this.nowMs + claim.leaseMs);
      return { status: "in-flight", fingerprint, remainingMs: row.untilMs - this.nowMs };
    }
    if (row.state === "run" && claim.recovery === "hold") {
      Object.assign(row, { state: "held", reason: "lease-expired" });
      return { status: "held", fingerprint, reason: "lease-expired" };
    }
    expect(fence).toBeGreaterThan(row.fence);
    const { token, fingerprint: claimed } = claim;
    Object.assign(row, {
      state: "run",
      token,
      fingerprint: claimed,
      fence,
      untilMs: this.nowMs + claim.leaseMs,
    });
    return { status: "acquired", fence };
  }

  read(key: string): unknown {
    const { state, token, fence, fingerprint, reason, untilMs, decision } = this.at(key);
    if (state === "absent") return undefined;
    const common = { state, token, fence, fingerprint, ...(decision === undefined ? {} : { decision }) };
    if (state === "run") return { ...common, remainingMs: untilMs - this.nowMs };
    return state === "held" ? { ...common, reason } : common;
  }

  readReleased(key: string): unknown {
    const { state, fence, fingerprint, untilMs, decision } = this.at(key);
    if (state !== "absent" || decision === undefined || untilMs <= this.nowMs) return undefined;
    return { state: "free", fence, fingerprint, decision };
  }

  step(key: string, token: string, from: readonly string[], change: Partial<ModelRow>): "ok" | "lost" {
    const row = this.at(key);
    if (row.token !== token || !from.includes(row.state)) return "lost";
    Object.assign(row, change);
    return "ok";
  }

  complete(key: string, token: string): "ok" | "lost" {
    const row = this.at(key);
    if (row.state === "done") return row.token === token ? "ok" : "lost";
    return this.step(key, token, ["run", "held"], { state: "done", untilMs: this.nowMs + 90 * dayMs });
  }

  /** As complete(), but a key that is done is nobody's any more. */
  completeIn(key: string, token: string): "ok" | "lost" {
    return this.at(key).state === "done" ? "lost" : this.complete(key, token);
  }

  /** `token`: what the store gave the key, which nobody has. */
  resolve(key: string, outcome: "done" | "released", fence: number, token: string): "ok" | "not-held" {
    const row = this.at(key);
    const expired = row.state === "run" && row.untilMs <= this.nowMs;
    if ((row.state !== "held" && !expired) || row.fence !== fence) return "not-held";
    const reason = row.state === "held" ? row.reason : "lease-expired";
    row.decision = { outcome, at: this.nowMs, fence, reason };
    row.token = token;
    row.state = outcome === "done" ? "done" : "absent";
    row.untilMs = this.nowMs + 90 * dayMs;
    return "ok";
  }

  release(key: string, token: string): "ok" | "lost" {
    const remembered = this.at(key).decision === undefined ? 1 : 90;
    return this.step(key, token, ["run"], {
      state: "absent",
      untilMs: this.nowMs + remembered * dayMs,
    });
  }

  /** `token`: as for resolve(). */
  reopen(key: string, fence: number, token: string): "ok" | "not-decided" {
    const row = this.at(key);
    const { state, decision } = row;
    const isOver = (state !== "done" && state !== "absent") || row.untilMs <= this.nowMs;
    if (isOver || decision?.fence !== row.fence || row.fence !== fence) return "not-decided";
    const reopened = { ...decision, reopened: { at: this.nowMs } };
    Object.assign(row, {
      state: "held",
      token,
      fence: fence + 1,
      reason: decision.reason,
      decision: reopened,
    });
    return "ok";
  }
}

const keys = ["a.b.c", "a.b.d", "\0"];
const key = fc.constantFrom(...keys);
const token = fc.constantFrom("t1", "t2", "t3");
const seenFence = fc.constantFrom("read", "read", "read", "another");
const decision = fc.constantFrom("done" as const, "released" as const);
const of = <Name extends string>(op: Name) => fc.constant(op);
const operation = fc.oneof(
  { weight: 4, arbitrary: fc.record({ op: of("claim"), key, token, rerun: fc.boolean() }) },
  { weight: 2, arbitrary: fc.record({ op: of("complete"), key, token }) },
  { weight: 3, arbitrary: fc.record({ op: of("completeIn"), key, token, commit: fc.boolean() }) },
  fc.record({ op: of("heartbeat"), key, token, leaseMs: fc.constantFrom(leaseMs, 5 * leaseMs) }),
  fc.record({ op: of("release"), key, token }),
  { weight: 3, arbitrary: fc.record({ op: of("hold"), key, token }) },
  {
    weight: 3,
    arbitrary: fc.record({ op: of("resolve"), key, outcome: decision, fence: seenFence }),
  },
  { weight: 3, arbitrary: fc.record({ op: of("reopen"), key, fence: seenFence }) },
  {
    weight: 2,
    arbitrary: fc.record({
      op: of("wait"),
      ms: fc.constantFrom(1, leaseMs - 1, leaseMs, 45 * dayMs, 90 * dayMs),
    }),
  },
  fc.record({ op: of("prune") }),
);
// By chance alone few keys come to an operator.
const decided = fc
  .record({ key, token, outcome: decision, rerun: fc.boolean() })
  .map((chosen): readonly Operation[] => [
    { op: "claim", ...chosen },
    { op: "hold", ...chosen },
    { op: "resolve", ...chosen, fence: "read" },
  ]);
const operations = fc
  .array(fc.oneof({ weight: 7, arbitrary: operation.map((each) => [each]) }, decided), {
    minLength: 5,
    maxLength: 30,
  })
  .map((parts) => parts.flat());
type Operation = typeof operation extends fc.Arbitrary<infer T> ? T : never;
type StoreOperation = Exclude<Operation, { op: "wait" }>;

onPostgres("the idempotency store", () => {
  const schema = isolatedName("pg");
  const pools = [0, 1].map(() => new Pool({ connectionString: postgresUrl, max: 2 }));
  const clock = testClock();
  let processes: { stores: PostgresStores; pool: Pool }[];

  beforeAll(async () => {
    await migratePostgres(pools[0]!, { schema });
    processes = pools.map((pool) => ({
      pool,
      stores: createPostgresStores({ pool, schema, now: clock.now, pruneIntervalMs: 0 }),
    }));
  });

  afterAll(async () => {
    for (const { stores } of processes) stores.close();
    await pools[0]!.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`);
    for (const pool of pools) await pool.end();
  });

  async function apply(
    operated: StoreOperation,
    model: Model,
    store: PostgresIdempotencyStore,
    pool: Pool,
  ): Promise<void> {
    switch (operated.op) {
      case "claim": {
        const recovery = operated.rerun ? "rerun" : "hold";
        const claim = {
          token: operated.token,
          fingerprint: `f-${operated.token}`,
          leaseMs,
          recovery,
        } as const;
        const result = await store.claim(operated.key, claim);
        const fence = result.status === "acquired" ? result.fence : 0;
        expect(result).toEqual(model.claim(operated.key, claim, fence));
        return;
      }
      case "completeIn": {
        const attempt = withPostgresTransaction(pool, async (tx) => {
          const answer = await store.completeIn(tx, operated.key, operated.token);
          if (!operated.commit || answer === "lost") throw new Error(answer);
        });
        const row = { ...model.at(operated.key) };
        const expected = model.completeIn(operated.key, operated.token);
        if (operated.commit && expected === "ok") return attempt;
        await expect(attempt).rejects.toThrow(expected);
        model.rows.set(operated.key, row);
        return;
      }
      case "complete":
        expect(await store.complete(operated.key, operated.token)).toBe(
          model.complete(operated.key, operated.token),
        );
        return;
      case "heartbeat": {
        const expected = model.step(operated.key, operated.token, ["run"], {
          untilMs: model.nowMs + operated.leaseMs,
        });
        expect(await store.heartbeat(operated.key, operated.token, operated.leaseMs)).toBe(expected);
        return;
      }
      case "release": {
        const expected = model.release(operated.key, operated.token);
        expect(await store.release(operated.key, operated.token)).toBe(expected);
        return;
      }
      case "hold": {
        const expected = model.step(operated.key, operated.token, ["run"], { state: "held", reason: "why" });
        expect(await store.hold(operated.key, operated.token, "why")).toBe(expected);
        return;
      }
      case "resolve": {
        const { outcome } = operated;
        const row = model.at(operated.key);
        const fence = operated.fence === "read" ? row.fence : row.fence + 1;
        const answer = await store.resolve(operated.key, outcome, { fence });
        const given = (await store.read(operated.key))?.token ?? "";
        expect(answer).toBe(model.resolve(operated.key, outcome, fence, given));
        expect(answer === "ok" && ["t1", "t2", "t3"].includes(given)).toBe(false);
        return;
      }
      case "reopen": {
        const { fence: known } = model.at(operated.key);
        const fence = operated.fence === "read" ? known : known + 1;
        const answer = await store.reopen(operated.key, { fence });
        const given = (await store.read(operated.key))?.token ?? "";
        expect(answer).toBe(model.reopen(operated.key, fence, given));
        expect(answer === "ok" && ["t1", "t2", "t3"].includes(given)).toBe(false);
        return;
      }
      case "prune":
        await store.prune();
    }
  }

  test("behaves as the model, over pruning and two processes", async () => {
    const scenario = fc.asyncProperty(operations, async (each) => {
      await pools[0]!.query(`TRUNCATE ${schema}.countersign_idempotency`);
      const model = new Model();
      model.nowMs = clock.now();
      for (const [index, operated] of each.entries()) {
        const { stores, pool } = processes[index % 2]!;
        if (operated.op === "wait") {
          clock.advance(operated.ms);
          model.nowMs = clock.now();
        } else {
          await apply(operated, model, stores.idempotency, pool);
        }
        const other = processes[(index + 1) % 2]!.stores.idempotency;
        for (const read of keys) {
          expect(await other.read(read)).toEqual(model.read(read));
          expect(await other.readReleased(read)).toEqual(model.readReleased(read));
        }
      }
    });
    await fc.assert(scenario, fuzzRuns(60));
  }, 60_000);

  test("gives back any text as key, and never two as one", async () => {
    const text = fc.oneof(
      fc.string({ unit: "binary", minLength: 1, maxLength: 256 }),
      fc
        .array(fc.integer({ min: 0, max: 0xffff }), { minLength: 1, maxLength: 512 })
        .map((units) => String.fromCharCode(...units)),
      fc
        .array(fc.integer({ min: 0xd800, max: 0xdfff }), { minLength: 500, maxLength: 512 })
        .map((units) => String.fromCharCode(...units)),
    );
    const property = fc.asyncProperty(fc.uniqueArray(text, { minLength: 1, maxLength: 8 }), async (texts) => {
      await pools[0]!.query(`TRUNCATE ${schema}.countersign_idempotency, ${schema}.countersign_nonces`);
      const { idempotency, nonces } = processes[0]!.stores;
      for (const [index, each] of texts.entries()) {
        const claim = { token: `t${index}`, fingerprint: "f", leaseMs, recovery: "hold" } as const;
        expect((await idempotency.claim(each, claim)).status).toBe("acquired");
        expect(await nonces.claim({ scope: each, nonce: each, token: `t${index}`, retainMs: 1000 })).toBe(
          "fresh",
        );
      }
      const { entries } = await idempotency.list({ state: "run", limit: 1000 });
      expect(new Set(entries.map((entry) => entry.key))).toEqual(new Set(texts));
    });
    await fc.assert(property, fuzzRuns(100));
  }, 60_000);
});
