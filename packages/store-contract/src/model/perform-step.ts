import type { Platform, ProcessIndex } from "./engine.ts";
import { type Step, claimOf, decider, holdReason, leaseMs, reopener } from "./reference-store.ts";

/** Takes the step on the real store, as one of the two processes. */
export async function performStep(platform: Platform, by: ProcessIndex, step: Step): Promise<unknown> {
  const store = platform.store(by);
  switch (step.op) {
    case "claim":
      return store.claim(step.key, claimOf(step));
    case "heartbeat":
      return store.heartbeat(step.key, step.token, leaseMs);
    case "complete":
      return store.complete(step.key, step.token);
    case "release":
      return store.release(step.key, step.token);
    case "hold":
      return store.hold(step.key, step.token, holdReason);
    case "pay":
      if (platform.payments === undefined) throw new Error("this engine has no transactions");
      return platform.payments.pay(by, step);
    case "resolve":
      return store.resolve(step.key, step.outcome, { fence: step.fence, ...decider });
    case "reopen":
      return store.reopen(step.key, { fence: step.fence, ...reopener });
    case "readReleased":
      return store.readReleased(step.key);
    case "read":
      return store.read(step.key);
    default:
      return step satisfies never;
  }
}
