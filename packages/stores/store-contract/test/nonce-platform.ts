// A correct nonce store with everything that the contract asks about, from which wrong ones are made.
import type { NonceClaim } from "@countersign/core";
import type { ContractNonceStore, EngineHarness } from "../dist/harness.js";
import type { StoreHarnesses } from "@countersign/store-contract";
import { engineOf, fillUpTo } from "./platform.ts";

const room = 300;

export interface Kept {
  token: string;
  /** The last millisecond in which the nonce is live. */
  untilMs: number;
}

export interface NoncePlatform {
  readonly clock: { nowMs: number };
  readonly now: () => number;
  readonly engine: { isRunning: boolean };
  readonly kept: Map<string, Kept>;
  readonly nameOf: (claim: NonceClaim) => string;
  readonly store: Required<Omit<ContractNonceStore, "engine">>;
}

export interface NoncePlatformOptions {
  readonly nameOf?: (claim: NonceClaim) => string;
  readonly clockShiftMs?: () => number;
}

export function createNoncePlatform({
  nameOf = ({ scope, nonce }) => JSON.stringify([scope, nonce]),
  clockShiftMs = () => 0,
}: NoncePlatformOptions = {}): NoncePlatform {
  const clock = { nowMs: 1_800_000_000_000 };
  const now = () => clock.nowMs + clockShiftMs();
  const engine = { isRunning: true };
  const kept = new Map<string, Kept>();
  let isClosed = false;
  const assertUsable = () => {
    if (isClosed) throw new Error("the store is closed");
    if (!engine.isRunning) throw new Error("the engine is stopped");
  };
  const store: Required<Omit<ContractNonceStore, "engine">> = {
    claim(claim) {
      assertUsable();
      const name = nameOf(claim);
      const untilMs = now() + claim.retainMs;
      const found = kept.get(name);
      if (found !== undefined && found.untilMs >= now()) {
        if (found.token !== claim.token) return "seen";
        found.untilMs = Math.max(found.untilMs, untilMs);
        return "fresh";
      }
      if (found === undefined && kept.size >= room) throw new Error("the store is full");
      kept.set(name, { token: claim.token, untilMs });
      return "fresh";
    },
    prune() {
      assertUsable();
      const ended = [...kept].filter(([, { untilMs }]) => untilMs < now());
      for (const [name] of ended) kept.delete(name);
      return ended.length;
    },
    close: () => void (isClosed = true),
  };
  return { clock, now, engine, kept, nameOf, store };
}

/** The harness of a platform. `handle` makes a store on it: as it is, or wrong. */
export function nonceHarnessOf(
  platform: NoncePlatform,
  handle: () => ContractNonceStore,
  engine: Partial<EngineHarness> = {},
): StoreHarnesses["nonces"] {
  return {
    store: handle(),
    advance: (ms) => void (platform.clock.nowMs += ms),
    another: handle,
    fill() {
      const filler = handle();
      const claim = { scope: "filler", token: "filler", retainMs: 1_000_000 };
      return fillUpTo(room, (index) => filler.claim({ ...claim, nonce: `${index}` }));
    },
    engine: { ...engineOf(platform.engine), ...engine },
    close: () => platform.store.close(),
  };
}
