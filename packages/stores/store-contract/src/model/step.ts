import type { IdempotencyClaim, IdempotencyStore } from "@countersign/idempotency";

interface StepOn<Op> {
  readonly op: Op;
  readonly key: string;
}

interface Owned<Op> extends StepOn<Op> {
  readonly token: string;
}

interface Decided<Op> extends StepOn<Op> {
  readonly fence: number;
  readonly by?: string | undefined;
  readonly note?: string | undefined;
}

/** One step of a store, as data. So a run can be printed, shortened, and tried on the reference in another order. */
export type Step =
  | (Owned<"claim"> & { readonly leaseMs: number; readonly recovery: "hold" | "rerun" })
  | (Owned<"heartbeat"> & { readonly leaseMs: number })
  | Owned<"complete" | "release">
  | (Owned<"hold"> & { readonly reason: string })
  | (Decided<"resolve"> & { readonly outcome: "done" | "released" })
  | Decided<"reopen">
  | StepOn<"read" | "readReleased">;

/** The claim that a step makes: its fingerprint tells whose it is. */
export function claimOf({ token, leaseMs, recovery }: Extract<Step, { op: "claim" }>): IdempotencyClaim {
  return { token, fingerprint: `f-${token}`, leaseMs, recovery };
}

export function fenceIn(answer: unknown): number | undefined {
  const fence = memberOf(answer, "fence");
  return typeof fence === "number" ? fence : undefined;
}

export function memberOf(answer: unknown, name: string): unknown {
  return typeof answer === "object" && answer !== null ? Reflect.get(answer, name) : undefined;
}

/** Takes the step on a store. */
export async function performStep(store: IdempotencyStore, step: Step): Promise<unknown> {
  const { op, key } = step;
  switch (op) {
    case "claim":
      return store.claim(key, claimOf(step));
    case "heartbeat":
      return store.heartbeat(key, step.token, step.leaseMs);
    case "complete":
      return store.complete(key, step.token);
    case "release":
      return store.release(key, step.token);
    case "hold":
      return store.hold(key, step.token, step.reason);
    case "resolve":
      return store.resolve(key, step.outcome, { fence: step.fence, by: step.by, note: step.note });
    case "reopen":
      return store.reopen(key, { fence: step.fence, by: step.by, note: step.note });
    case "readReleased":
      return store.readReleased(key);
    case "read":
      return store.read(key);
    default:
      return op satisfies never;
  }
}
