// A correct store with everything that the contract asks about, in the memory of one process: wrong stores are made from it.
import {
  type IdempotencyStore,
  type MemoryIdempotencyStore,
  memoryIdempotencyStore,
} from "@countersign/idempotency";
import type { EngineHarness } from "../dist/harness.js";
import type { StoreHarnesses } from "@countersign/store-contract";

export const dayMs = 86_400_000;

const room = 300;

/** A transaction: the keys that it has locked, and who completes them when it commits. */
export type Tx = Map<string, string>;
/** It has what a store may have. */
export type Store = IdempotencyStore<Tx> & Required<Pick<IdempotencyStore<Tx>, "completeIn" | "list">>;

export interface Platform {
  readonly clock: { nowMs: number };
  /** The state machine, without locks and faults. */
  readonly memory: MemoryIdempotencyStore;
  readonly store: Store;
  readonly locks: Map<string, Tx>;
  readonly open: Set<Tx>;
  readonly engine: { isRunning: boolean };
}

export interface PlatformOptions {
  readonly retentionMs?: number;
  /** Added to the clock at each reading. */
  readonly clockShiftMs?: () => number;
}

export function createPlatform({
  retentionMs = dayMs,
  clockShiftMs = () => 0,
}: PlatformOptions = {}): Platform {
  const clock = { nowMs: 1_800_000_000_000 };
  const now = () => clock.nowMs + clockShiftMs();
  const memory = memoryIdempotencyStore({ max: room, retentionMs, now });
  const locks = new Map<string, Tx>();
  const open = new Set<Tx>();
  const engine = { isRunning: true };
  const reach = () => {
    if (!engine.isRunning) throw new Error("the engine is stopped");
    return memory;
  };
  const change = (key: string) => {
    if (locks.has(key)) throw new Error("the key is locked by a transaction");
    return reach();
  };
  const store: Store = {
    retentionMs: dayMs,
    claim: (key, claim) => change(key).claim(key, claim),
    read: (key) => reach().read(key),
    heartbeat: (key, token, leaseMs) => change(key).heartbeat(key, token, leaseMs),
    complete: (key, token) => change(key).complete(key, token),
    release: (key, token) => change(key).release(key, token),
    hold: (key, token, reason) => change(key).hold(key, token, reason),
    resolve: (key, outcome, decision) => change(key).resolve(key, outcome, decision),
    reopen: (key, decision) => change(key).reopen(key, decision),
    readReleased: (key) => reach().readReleased(key),
    list: (query) => reach().list(query),
    prune: () => reach().prune(),
    close: () => memory.close(),
    completeIn(tx, key, token) {
      // A case gives it what the type forbids.
      if (!((tx as unknown) instanceof Map))
        throw new TypeError("completeIn needs a transaction of the platform");
      if (!open.has(tx)) throw new Error("no transaction is open");
      if (tx.has(key)) return "lost";
      const record = change(key).read(key);
      if (record?.token !== token || record.state === "done") return "lost";
      tx.set(key, token);
      locks.set(key, tx);
      return "ok";
    },
  };
  return { clock, memory, store, locks, open, engine };
}

/** A server that is stopped and started, and keeps everything. */
export function engineOf(engine: { isRunning: boolean }): EngineHarness {
  return {
    stop: () => void (engine.isRunning = false),
    start: () => void (engine.isRunning = true),
    durable: true,
    rejectsWithinMs: 50,
    recoversWithinMs: 100,
  };
}

export async function fillUpTo(count: number, add: (index: number) => unknown): Promise<void> {
  for (let index = 0; index < count; index += 1) {
    try {
      await add(index);
    } catch {
      return;
    }
  }
}

/** The harness of a platform. `handle` makes a store on it: as it is, or wrong. */
export function harnessOf(
  platform: Platform,
  handle: (platform: Platform) => Store = ({ store }) => store,
  engine: Partial<EngineHarness> = {},
): StoreHarnesses<Tx>["idempotency"] {
  const { clock, memory, locks, open } = platform;
  const store = handle(platform);
  return {
    store,
    advance: (ms) => void (clock.nowMs += ms),
    another: () => handle(platform),
    fill: () => fillUpTo(room, (index) => store.claim(`filler-${index}`, fillerClaim)),
    async transaction(work) {
      const tx: Tx = new Map();
      open.add(tx);
      try {
        await work(tx);
        for (const [key, token] of tx) memory.complete(key, token);
      } finally {
        open.delete(tx);
        for (const key of tx.keys()) locks.delete(key);
      }
    },
    engine: { ...engineOf(platform.engine), ...engine },
    close: () => memory.close(),
  };
}

const fillerClaim = {
  token: "filler",
  fingerprint: "filler",
  leaseMs: 1_000_000_000_000,
  recovery: "hold",
} as const;
