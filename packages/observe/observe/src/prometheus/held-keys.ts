import type { Gauge } from "prom-client";
import { answersOf } from "./polling.ts";

export interface HeldKeysStore {
  list?(query: {
    readonly state: "held";
    readonly cursor?: string | undefined;
    readonly limit: number;
  }): Page | Promise<Page>;
}

interface Page {
  readonly entries: readonly unknown[];
  readonly cursor: string | undefined;
}

const pageSize = 1_000;
const maxPages = 10;
/** Sets the gauge for each store. A store that does not answer has no value, which an alert can see. */
export async function countHeld(
  factoryName: string,
  stores: Readonly<Record<string, HeldKeysStore>>,
  gauge: Gauge<"store">,
): Promise<void> {
  const answers = await answersOf(factoryName, "list the held keys", stores, heldIn);
  gauge.reset();
  for (const [store, held] of answers) gauge.set({ store }, held);
}

async function heldIn(store: HeldKeysStore): Promise<number> {
  let held = 0;
  let cursor: string | undefined;
  for (let page = 0; page < maxPages; page += 1) {
    // oxlint-disable-next-line no-await-in-loop -- each page begins where the last one ended
    const listing = await store.list?.({ state: "held", cursor, limit: pageSize });
    held += listing?.entries.length ?? 0;
    cursor = listing?.cursor;
    if (cursor === undefined) break;
  }
  return held;
}
