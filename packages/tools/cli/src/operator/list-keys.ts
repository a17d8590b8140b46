import { isFailureCount } from "@countersign/idempotency/door";
import type { IdempotencyListQuery, IdempotencyRecord } from "@countersign/idempotency";
import { UsageError } from "../command-io.ts";
import { messageOf } from "../thrown.ts";
import { isUndecided, type KeyEntry } from "./known-record.ts";
import type { OperatorStore } from "./store.ts";

type Store = Pick<OperatorStore["idempotency"], "list">;
type Show = (entry: KeyEntry) => void | Promise<void>;

const pageLimit = 1000;

/**
 * Shows about `limit` keys, and returns the cursor of what follows. Pages can be empty although more keys follow: after an empty
 * one it asks for more, because an engine that scans would take a round trip for each few of all its keys.
 */
export async function listKeys(
  store: Store,
  query: IdempotencyListQuery,
  show: Show,
): Promise<string | undefined> {
  let { cursor, limit } = query;
  let missing = query.limit;
  do {
    // oxlint-disable-next-line no-await-in-loop -- the cursor of a page leads to the next
    const page = await readPage(store, { ...query, cursor, limit });
    // oxlint-disable-next-line no-await-in-loop -- one key after the other, in their order
    for (const entry of page.entries) await show(entry);
    missing -= page.entries.length;
    cursor = page.cursor;
    limit = page.entries.length === 0 ? Math.min(2 * limit, pageLimit) : missing;
  } while (missing > 0 && cursor !== undefined);
  return cursor;
}

/**
 * Shows every key that waits for an operator, each once, and returns how many. Runs come first: one that is held while this
 * reads is found among the held keys then.
 */
export async function listUndecided(store: Store, show: Show): Promise<number> {
  const shown = new Set<string>();
  const showOnce: Show = async ({ key, record }) => {
    if (!isUndecided(record) || isFailureCount(key, record) || shown.has(key)) return;
    shown.add(key);
    await show({ key, record });
  };
  for (const state of ["run", "held"] satisfies IdempotencyRecord["state"][]) {
    let cursor: string | undefined;
    do {
      // oxlint-disable-next-line no-await-in-loop -- the cursor of a page leads to the next
      cursor = await listKeys(store, { state, cursor, limit: pageLimit }, showOnce);
    } while (cursor !== undefined);
  }
  return shown.size;
}

async function readPage(store: Store, query: IdempotencyListQuery): ReturnType<typeof pageOf> {
  try {
    return await pageOf(store, query);
  } catch (error) {
    // State and limit are checked already.
    if (!(error instanceof TypeError) || !messageOf(error).includes("cursor")) throw error;
    throw new UsageError("--cursor: expected what the page before printed, of the same store and state", {
      cause: error,
    });
  }
}

async function pageOf(store: Store, query: IdempotencyListQuery) {
  return await store.list(query);
}
