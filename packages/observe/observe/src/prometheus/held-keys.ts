import { inTime, optionError, warnOfError, type OptionOwner } from "@countersign/core/door";
import type { Gauge } from "prom-client";

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

export function readStores(
  given: unknown,
  owner: OptionOwner,
  name: string,
): Readonly<Record<string, HeldKeysStore>> {
  if (given === undefined) return {};
  if (areStores(given)) return { ...given };
  throw optionError(owner, name, "an object of stores that can list, by a name each", given);
}

function areStores(given: unknown): given is Readonly<Record<string, HeldKeysStore>> {
  const isObject = typeof given === "object" && given !== null;
  return isObject && Object.values(given).every((store) => typeof Object(store).list === "function");
}

const pageSize = 1_000;
const maxPages = 10;
// Shorter than a scrape may take by default.
const timeoutMs = 5_000;

/** Sets the gauge for each store. A store that does not answer has no value, which an alert can see. */
export async function countHeld(
  factoryName: string,
  stores: Readonly<Record<string, HeldKeysStore>>,
  gauge: Gauge<"store">,
): Promise<void> {
  await Promise.all(
    Object.entries(stores).map(async ([store, keys]) => {
      try {
        gauge.set({ store }, await inTime(heldIn(keys), timeoutMs, late));
      } catch (error) {
        gauge.remove({ store });
        warnOfError(factoryName, `could not list the held keys of ${store}`, error);
      }
    }),
  );
}

function late(): Error {
  return new Error(`the store did not list within ${timeoutMs} ms`);
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
