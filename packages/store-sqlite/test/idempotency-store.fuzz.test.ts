import type { IdempotencyClaim } from "@countersign/idempotency-guard";
import {
  type SqliteIdempotencyStore,
  createSqliteStores,
  withImmediateTransaction,
} from "@countersign/store-sqlite";
import { expect, test } from "@jest/globals";
import * as fc from "fast-check";
import { type Connection, dayMs, drivers, temporaryFile, testClock } from "./connections.ts";

const leaseMs = 1000;

interface ModelRow {
  state: "run" | "held" | "done" | "absent";
  token: string;
  fence: number;
  fingerprint: string;
  reason: string;
  untilMs: number;
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
    return row;
  }

  claim(key: string, claim: IdempotencyClaim): unknown {
    const row = this.at(key);
    const { fingerprint, reason } = row;
    if (row.state === "done") return { status: "done", fingerprint };
    if (row.state === "held") return { status: "held", fingerprint, reason };
    if (row.state === "run" && row.token === claim.token) {
      row.untilMs = this.nowMs + claim.leaseMs;
      return { status: "acquired", fence: row.fence };
    }
    if (row.state === "run" && row.untilMs > this.nowMs) {
      return { status: "in-flight", fingerprint, remainingMs: row.untilMs - this.nowMs };
    }
    if (row.state === "run" && claim.recovery === "hold") {
      Object.assign(row, { state: "held", reason: "lease-expired" });
      return { status: "held", fingerprint, reason: "lease-expired" };
    }
    const { token, fingerprint: claimed } = claim;
    Object.assign(row, { state: "run", token, fingerprint: claimed, fence: row.fence + 1 });
    row.untilMs = this.nowMs + claim.leaseMs;
    return { status: "acquired", fence: row.fence };
  }

  read(key: string): unknown {
    const { state, token, fence, fingerprint, reason, untilMs } = this.at(key);
    if (state === "absent") return undefined;
    if (state === "run") return { state, token, fence, fingerprint, remainingMs: untilMs - this.nowMs };
    return state === "held"
      ? { state, token, fence, fingerprint, reason }
      : { state, token, fence, fingerprint };
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

  resolve(key: string, outcome: "done" | "released"): "ok" | "not-held" {
    const row = this.at(key);
    const expired = row.state === "run" && row.untilMs <= this.nowMs;
    if (row.state !== "held" && !expired) return "not-held";
    row.state = outcome === "done" ? "done" : "absent";
    row.untilMs = this.nowMs + 90 * dayMs;
    return "ok";
  }
}

const key = fc.constantFrom("a.b.c", "a.b.d", "\0");
const token = fc.constantFrom("t1", "t2", "t3");
const operation = fc.oneof(
  { weight: 4, arbitrary: fc.record({ op: fc.constant("claim" as const), key, token, rerun: fc.boolean() }) },
  { weight: 2, arbitrary: fc.record({ op: fc.constant("complete" as const), key, token }) },
  {
    weight: 3,
    arbitrary: fc.record({ op: fc.constant("completeIn" as const), key, token, commit: fc.boolean() }),
  },
  fc.record({ op: fc.constant("heartbeat" as const), key, token }),
  fc.record({ op: fc.constant("release" as const), key, token }),
  fc.record({ op: fc.constant("hold" as const), key, token }),
  fc.record({ op: fc.constant("resolve" as const), key, outcome: fc.constantFrom("done", "released") }),
  {
    weight: 2,
    arbitrary: fc.record({
      op: fc.constant("wait" as const),
      ms: fc.constantFrom(1, leaseMs - 1, leaseMs, 45 * dayMs, 90 * dayMs),
    }),
  },
  fc.record({ op: fc.constant("prune" as const) }),
  fc.record({ op: fc.constant("restart" as const) }),
);
type Operation = typeof operation extends fc.Arbitrary<infer T> ? T : never;

/** Two processes of one platform on one file; operations alternate between them. */
function setUp(open: (path: string) => Connection) {
  const file = temporaryFile();
  const clock = testClock();
  const start = () => {
    const database = open(file);
    const { idempotency: store } = createSqliteStores({ database, now: clock.now, pruneIntervalMs: 0 });
    return { database, store };
  };
  return { clock, start };
}

function apply(operated: Operation, model: Model, store: SqliteIdempotencyStore, database: Connection): void {
  switch (operated.op) {
    case "claim": {
      const recovery = operated.rerun ? "rerun" : "hold";
      const claim = { token: operated.token, fingerprint: `f-${operated.token}`, leaseMs, recovery } as const;
      const before = model.at(operated.key).fence;
      const result = store.claim(operated.key, claim);
      // Pruning may only raise the fence at which an absent key begins.
      if (result.status === "acquired" && model.at(operated.key).state === "absent") {
        expect(result.fence).toBeGreaterThan(before);
        model.at(operated.key).fence = result.fence - 1;
      }
      expect(result).toEqual(model.claim(operated.key, claim));
      return;
    }
    case "completeIn": {
      const attempt = () =>
        withImmediateTransaction(database, (tx) => {
          const answer = store.completeIn(tx, operated.key, operated.token);
          if (!operated.commit || answer === "lost") throw new Error(answer);
        });
      const row = { ...model.at(operated.key) };
      const expected = model.complete(operated.key, operated.token);
      if (operated.commit && expected === "ok") return attempt();
      expect(attempt).toThrow(expected);
      model.rows.set(operated.key, row);
      return;
    }
    case "complete":
      expect(store.complete(operated.key, operated.token)).toBe(model.complete(operated.key, operated.token));
      return;
    case "heartbeat": {
      const untilMs = model.nowMs + leaseMs;
      const expected = model.step(operated.key, operated.token, ["run"], { untilMs });
      expect(store.heartbeat(operated.key, operated.token, leaseMs)).toBe(expected);
      return;
    }
    case "release": {
      const expected = model.step(operated.key, operated.token, ["run"], { state: "absent" });
      expect(store.release(operated.key, operated.token)).toBe(expected);
      return;
    }
    case "hold": {
      const change = { state: "held", reason: "why" } as const;
      const expected = model.step(operated.key, operated.token, ["run"], change);
      expect(store.hold(operated.key, operated.token, "why")).toBe(expected);
      return;
    }
    case "resolve": {
      const { outcome } = operated;
      expect(store.resolve(operated.key, outcome)).toBe(model.resolve(operated.key, outcome));
      return;
    }
    case "prune":
      store.prune();
      return;
    default:
      throw new Error(`${operated.op} is applied by the test itself`);
  }
}

test.each(drivers)(
  "behaves as the model, over restarts, pruning and two connections, %s",
  (_name, open) => {
    fc.assert(
      fc.property(fc.array(operation, { minLength: 5, maxLength: 40 }), (operations) => {
        const { clock, start } = setUp(open);
        const model = new Model();
        model.nowMs = clock.now();
        const processes = [start(), start()];
        for (const [index, operated] of operations.entries()) {
          const { store, database } = processes[index % 2]!;
          if (operated.op === "wait") {
            clock.advance(operated.ms);
            model.nowMs = clock.now();
          } else if (operated.op === "restart") {
            store.close();
            database.close();
            processes[index % 2] = start();
          } else {
            apply(operated, model, store, database);
          }
          const other = processes[(index + 1) % 2]!.store;
          for (const read of ["a.b.c", "a.b.d", "\0"]) expect(other.read(read)).toEqual(model.read(read));
        }
        for (const { store, database } of processes) {
          store.close();
          database.close();
        }
      }),
      { numRuns: 60 },
    );
  },
  30_000,
);
