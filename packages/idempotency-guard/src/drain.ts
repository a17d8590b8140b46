import { setTimeout as sleep } from "node:timers/promises";
import type { KeyState } from "./key-attempt.ts";

/** Options of `drain()`. */
export interface DrainOptions {
  /** How long to wait for what is under way, in milliseconds. Default 10,000. */
  readonly timeoutMs?: number | undefined;
}

/** What `drain()` has left behind; all 0 when everything was settled. */
export interface DrainReport {
  /** Keys that are owned: their handlers still run, or the store did not take their record. */
  readonly keys: number;
  /** Claims whose answer was lost and that could not be given back. */
  readonly claims: number;
}

const pauseMs = 50;

/** Waits until nothing is owned and nothing repeated in the background, or until the time is over. */
export async function drain(state: KeyState, timeoutMs: number): Promise<DrainReport> {
  state.draining = true;
  const endsAtMs = performance.now() + timeoutMs;
  for (;;) {
    const left = { keys: state.ownedKeys, claims: state.retries.claims };
    if (left.keys + left.claims === 0 || performance.now() >= endsAtMs) return left;
    state.retries.hurry();
    // oxlint-disable-next-line no-await-in-loop -- polling, for a few seconds at the end of a process
    await sleep(pauseMs);
  }
}
