import { setTimeout as sleep } from "node:timers/promises";
import type { IdempotencyStore } from "@countersign/idempotency";

export type StoreMethod = "claim" | "read" | "heartbeat" | "complete" | "release" | "hold";

/**
 * How one call goes wrong. `before`: nothing happens in the store; `after`: it happens, and the answer is lost. `twice`: as by
 * a client that sends again after a lost reply. A number delays the call by so many milliseconds.
 */
export type StoreFault =
  | "throws before"
  | "throws after"
  | "hangs before"
  | "hangs after"
  | "twice"
  | number
  | "as usual";

type Call = (...args: unknown[]) => unknown;

/** A store that can be told how its next calls go wrong. */
export class StoreFaults {
  readonly #queues = new Map<StoreMethod, StoreFault[]>();
  #always: StoreFault = "as usual";
  readonly calls: Partial<Record<StoreMethod, number>> = {};

  /** The next calls of the method go wrong in this order, later ones as always. */
  fail(method: StoreMethod, ...faults: readonly StoreFault[]): void {
    this.#queues.set(method, [...(this.#queues.get(method) ?? []), ...faults]);
  }

  /** Every call goes wrong like this from now on. */
  always(fault: StoreFault): void {
    this.#always = fault;
  }

  readonly wrap = (store: IdempotencyStore): IdempotencyStore =>
    new Proxy(store, {
      get: (target, name) => {
        const member: unknown = Reflect.get(target, name, target);
        if (typeof member !== "function") return member;
        const call: Call = (...args) => Reflect.apply(member, target, args);
        return isFaulty(name) ? (...args: unknown[]) => this.#call(name, () => call(...args)) : call;
      },
    });

  #call(method: StoreMethod, effect: () => unknown): unknown {
    this.calls[method] = (this.calls[method] ?? 0) + 1;
    const fault = this.#queues.get(method)?.shift() ?? this.#always;
    if (fault === "as usual") return effect();
    return goWrong(fault, effect);
  }
}

async function goWrong(fault: Exclude<StoreFault, "as usual">, effect: () => unknown): Promise<unknown> {
  if (typeof fault === "number") await sleep(fault, undefined, { ref: false });
  if (fault === "throws before") throw new Error("the engine is down");
  if (fault === "hangs before") return new Promise(() => {});
  if (fault === "twice") await effect();
  const answer = await effect();
  if (fault === "throws after") throw new Error("the answer was lost");
  if (fault === "hangs after") return new Promise(() => {});
  return answer;
}

const faultyMethods: ReadonlySet<string> = new Set<StoreMethod>([
  "claim",
  "read",
  "heartbeat",
  "complete",
  "release",
  "hold",
]);

function isFaulty(name: string | symbol): name is StoreMethod {
  return typeof name === "string" && faultyMethods.has(name);
}
