import type { Store } from "./claims.ts";
import { claimBy, longLeaseMs } from "./claims.ts";
import type { ContractNonceStore } from "./harness.ts";
import { useBy } from "./uses.ts";

/** A call of a store by the name of its method. */
export type Call = readonly [method: string, call: () => unknown];

/**
 * A call of each method that changes nothing on the keys of `takeOneOfEach` even when it is executed late, as one may be that
 * was sent and whose reply was lost.
 */
export function callsOf(store: Store): readonly Call[] {
  const calls: Call[] = [
    ["claim", () => store.claim("claimed without an answer", claimBy("a"))],
    ["read", () => store.read("running")],
    ["heartbeat", () => store.heartbeat("running", "stranger", longLeaseMs)],
    ["complete", () => store.complete("running", "stranger")],
    ["release", () => store.release("running", "stranger")],
    ["hold", () => store.hold("running", "stranger", "reason")],
    ["resolve", () => store.resolve("running", "released", { fence: 0 })],
    ["reopen", () => store.reopen("running", { fence: 0 })],
    ["readReleased", () => store.readReleased("running")],
    ["prune", () => store.prune()],
  ];
  if (store.list !== undefined) calls.push(["list", () => store.list?.({ state: "run", limit: 10 })]);
  return calls;
}

/** A call of each method of a nonce store. */
export function nonceCallsOf(store: ContractNonceStore): readonly Call[] {
  const calls: Call[] = [["claim", () => store.claim(useBy("b"))]];
  if (store.prune !== undefined) calls.push(["prune", () => store.prune?.()]);
  return calls;
}
