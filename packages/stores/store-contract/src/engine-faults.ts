import assert from "node:assert/strict";
import type { Awaitable } from "@countersign/idempotency";
import type { Call } from "./calls.ts";
import type { EngineHarness, StoreHarness } from "./harness.ts";
import { inTurn } from "./in-turn.ts";
import { outcomeOf, pause, within } from "./waiting.ts";

/** Checks that each call throws or is rejected. */
export async function assertThrows(calls: readonly Call[], when: string): Promise<void> {
  await inTurn(calls, async ([method, call]) => {
    const { error } = await outcomeOf(call);
    assert.ok(error !== undefined, `${method} must throw ${when}`);
  });
}

/** Stops the engine, checks that each call is rejected in time, all of them at once, and starts it again. */
export async function withStoppedEngine(
  harness: StoreHarness<unknown>,
  calls: readonly Call[],
): Promise<void> {
  const engine = engineOf(harness);
  const { rejectsWithinMs = 5_000 } = engine;
  await engine.stop();
  try {
    const ended = calls.map(async ([method, call]) => {
      const { error } = await within(
        rejectsWithinMs,
        outcomeOf(call),
        `${method} must be rejected while the engine is stopped`,
      );
      assert.ok(error !== undefined, `${method} must throw while the engine is stopped, and guess nothing`);
    });
    await Promise.all(ended);
  } finally {
    await engine.start();
  }
}

/** What the call answers once the store has found its engine again. */
export async function afterRecovery<T>(harness: StoreHarness<unknown>, call: () => Awaitable<T>): Promise<T> {
  const { recoversWithinMs = 10_000 } = engineOf(harness);
  const deadline = performance.now() + recoversWithinMs;
  for (;;) {
    // oxlint-disable-next-line no-await-in-loop -- one attempt after the other
    const outcome = await outcomeOf(call);
    if (outcome.error === undefined) return outcome.value;
    if (performance.now() > deadline) {
      const message = `the store must work again within ${recoversWithinMs} ms of the engine's start`;
      throw new Error(message, { cause: outcome.error.thrown });
    }
    // oxlint-disable-next-line no-await-in-loop -- one attempt after the other
    await pause(50);
  }
}

function engineOf({ engine }: StoreHarness<unknown>): EngineHarness {
  if (engine === undefined) throw new Error("only cases that need the engine stop it");
  return engine;
}
