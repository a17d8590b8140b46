import { failureCounts } from "@countersign/idempotency/internal";
import type {
  Awaitable,
  IdempotencyListing,
  IdempotencyListQuery,
  ReleasedKey,
} from "@countersign/idempotency";
import { messageOf, UsageError } from "../command-io.ts";
import type { KeyEntry, KnownRecord, OperatorStore } from "./store.ts";

/** Without the token, with which a stranger could end the attempt. */
export function shownRecord(record: KnownRecord): object {
  if (record.state === "free") return record;
  const { token: _token, ...shown } = record;
  return shown;
}

export function isUndecided(record: KnownRecord): boolean {
  return record.state === "held" || (record.state === "running" && record.remainingMs <= 0);
}

export type DecidedRecord = KnownRecord & Pick<ReleasedKey, "decision">;

/** A decision stands, and no attempt has had the key since. */
export function isDecided(record: KnownRecord): record is DecidedRecord {
  const { state, fence, decision } = record;
  return (state === "done" || state === "free") && decision?.fence === fence;
}

export async function readAny(
  store: Pick<OperatorStore["idempotency"], "read" | "readReleased">,
  key: string,
): Promise<KnownRecord | undefined> {
  return (await store.read(key)) ?? (await store.readReleased(key));
}

type Store = Pick<OperatorStore["idempotency"], "list">;

// Runs come first: one that is held or done meanwhile is found in the later state.
const states = ["running", "held", "done"] as const;

type Query = Omit<IdempotencyListQuery, "state"> & {
  readonly state?: IdempotencyListQuery["state"] | undefined;
};

/** As {@link listKeys}; without a state, of all of them one after the other. */
export async function listAnyKeys(store: Store, { state, cursor, limit }: Query) {
  if (state !== undefined) return await listKeys(store, { state, cursor, limit });
  const [begun, at] = /^(\w+):(.*)$/s.exec(cursor ?? "running:")?.slice(1) ?? [];
  let index = states.findIndex((each) => each === begun);
  if (index < 0) throw badCursor();
  let inner = at === "" ? undefined : at;
  const entries: KeyEntry[] = [];
  for (;;) {
    const [current = "running", next] = states.slice(index);
    // oxlint-disable-next-line no-await-in-loop -- a page ends where the next begins
    const page = await listKeys(store, { state: current, cursor: inner, limit: limit - entries.length });
    entries.push(...page.entries);
    if (page.cursor !== undefined) return { entries, cursor: `${current}:${page.cursor}` };
    if (next === undefined || entries.length >= limit) return { entries, cursor: next && `${next}:` };
    index += 1;
    inner = undefined;
  }
}

const pageLimit = 1000;

/** Lists about `limit` keys. After an empty page, not always the last, it asks for more: a scanning engine finds few per round trip. */
export async function listKeys(store: Store, query: IdempotencyListQuery): Promise<IdempotencyListing> {
  let { cursor, limit } = query;
  const entries: KeyEntry[] = [];
  do {
    const asked = { ...query, cursor, limit };
    // oxlint-disable-next-line no-await-in-loop -- the cursor of a page leads to the next
    const page = await refusingCursor(async () => await store.list(asked));
    entries.push(...page.entries);
    cursor = page.cursor;
    limit = page.entries.length === 0 ? Math.min(2 * limit, pageLimit) : query.limit - entries.length;
  } while (entries.length < query.limit && cursor !== undefined);
  return { entries, cursor };
}

/** Page after page, each when it is wanted. */
export async function* pagesOf<Page extends { readonly cursor?: string | undefined }>(
  read: (cursor: string | undefined) => Awaitable<Page>,
): AsyncGenerator<Page, void> {
  let cursor: string | undefined;
  do {
    // oxlint-disable-next-line no-await-in-loop -- the cursor of a page leads to the next
    const page = await read(cursor);
    yield page;
    cursor = page.cursor;
  } while (cursor !== undefined);
}

/** Lists each key once. Runs come first: one that is held meanwhile is found among the held keys. */
export async function* undecidedKeys(store: Store): AsyncGenerator<KeyEntry, void> {
  const shown = new Set<string>();
  for (const state of ["running", "held"] as const) yield* undecidedIn(store, state, shown);
}

async function* undecidedIn(store: Store, state: "running" | "held", shown: Set<string>) {
  const pages = pagesOf((cursor) => listKeys(store, { state, cursor, limit: pageLimit }));
  for await (const { entries } of pages) {
    for (const { key, record } of entries) {
      if (!isUndecided(record) || failureCounts.has(key, record) || shown.has(key)) continue;
      shown.add(key);
      yield { key, record };
    }
  }
}

/** A TypeError about the cursor becomes a UsageError. State and limit are checked already. */
export async function refusingCursor<T>(read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    if (!(error instanceof TypeError) || !messageOf(error).includes("cursor")) throw error;
    throw badCursor(error);
  }
}

function badCursor(cause?: unknown): UsageError {
  return new UsageError("--cursor: expected what the page before printed, of the same store and state", {
    cause,
  });
}
