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

/** It has what a store may have. */
export type Store = IdempotencyStore & Required<Pick<IdempotencyStore, "list">>;

export interface Platform {
  readonly clock: { nowMs: number };
  /** The state machine, without faults. */
  readonly memory: MemoryIdempotencyStore;
  readonly store: Store;
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
  const engine = { isRunning: true };
  const reach = () => {
    if (!engine.isRunning) throw new Error("the engine is stopped");
    return memory;
  };
  const store: Store = {
    retentionMs: dayMs,
    claim: (key, claim) => reach().claim(key, claim),
    read: (key) => reach().read(key),
    heartbeat: (key, token, leaseMs) => reach().heartbeat(key, token, leaseMs),
    complete: (key, token) => reach().complete(key, token),
    release: (key, token) => reach().release(key, token),
    hold: (key, token, reason) => reach().hold(key, token, reason),
    resolve: (key, outcome, decision) => reach().resolve(key, outcome, decision),
    reopen: (key, decision) => reach().reopen(key, decision),
    readReleased: (key) => reach().readReleased(key),
    list: (query) => reach().list(query),
    prune: () => reach().prune(),
    close: () => memory.close(),
  };
  return { clock, memory, store, engine };
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
): StoreHarnesses["idempotency"] {
  const { clock, memory } = platform;
  const store = handle(platform);
  return {
    store,
    advance: (ms) => void (clock.nowMs += ms),
    another: () => handle(platform),
    fill: () => fillUpTo(room, (index) => store.claim(`filler-${index}`, fillerClaim)),
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
