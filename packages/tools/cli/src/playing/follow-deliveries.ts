import { setTimeout as sleep } from "node:timers/promises";
import type { Delivery } from "@countersign/sandbox";

/** How deliveries are followed. */
export interface FollowOptions {
  readonly read: () => Promise<readonly Delivery[]>;
  /** Gets what is new or has changed since the reading before: at the first one everything. Never an empty list. */
  readonly show: (deliveries: readonly Delivery[]) => void;
  /** Pause between two readings. */
  readonly intervalMs: number;
  /** Ends it. */
  readonly signal: AbortSignal;
}

/** Reads deliveries again and again until the signal ends it; rejects when a reading fails. */
export async function followDeliveries({ read, show, intervalMs, signal }: FollowOptions): Promise<void> {
  let known = new Set<string>();
  while (!signal.aborted) {
    // oxlint-disable-next-line no-await-in-loop -- one reading after the other
    const deliveries = await read();
    const states = new Map(deliveries.map((delivery) => [JSON.stringify(delivery), delivery]));
    const changed = [...states].filter(([state]) => !known.has(state)).map(([, delivery]) => delivery);
    if (changed.length > 0) show(changed);
    known = new Set(states.keys());
    // oxlint-disable-next-line no-await-in-loop -- the pause between two readings
    await pause(intervalMs, signal);
  }
}

async function pause(intervalMs: number, signal: AbortSignal): Promise<void> {
  try {
    await sleep(intervalMs, undefined, { signal });
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}
