import { withDeadline } from "@countersign/core";
import { explainClaim, type Explanation } from "@countersign/explain";
import {
  begunAtMs,
  isFailureCount,
  type IdempotencyRecord,
  type IdempotencyStore,
} from "@countersign/idempotency";
import { messageOf, ServiceError } from "@countersign/loopback-page";

/** A key of a store, without token, fingerprint and answer. */
interface ShownKey {
  readonly key: string;
  readonly state: IdempotencyRecord["state"];
  /** Of its attempt: who decides about it names the attempt that was looked at. */
  readonly fence: number;
  /** When its attempt began, in milliseconds since 1970. */
  readonly since: number | undefined;
  /** Of a held key. */
  readonly reason: string | undefined;
  /** Of a run: what is left of its lease. Not of one that counts a failed attempt of an event: nobody decides about it. */
  readonly remainingMs: number | undefined;
  /** Who has it, and what to do. */
  readonly sentence: string;
}

/** The keys in one state. */
export interface ShownKeys {
  readonly keys: readonly ShownKey[];
  /** Whether there are more. */
  readonly isCut: boolean;
  /** False for a store that cannot list. */
  readonly lists: boolean;
}

export const keyStates = ["held", "run", "done"] as const;

const maxKeys = 200;
const maxPages = 20;
const timeoutMs = 5000;

/** The first 200 keys of a store in a state. Rejects with a ServiceError when it does not answer. */
export async function listKeys(
  store: IdempotencyStore,
  state: IdempotencyRecord["state"],
  nowMs: number,
): Promise<ShownKeys> {
  if (store.list === undefined) return { keys: [], isCut: false, lists: false };
  const keys: ShownKey[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < maxPages && keys.length <= maxKeys; page += 1) {
    const query = { state, limit: maxKeys + 1, ...(cursor !== undefined && { cursor }) };
    // oxlint-disable-next-line no-await-in-loop -- each page is behind the one before
    const listing = await asked(() => store.list?.(query));
    keys.push(...(listing?.entries ?? []).map(({ key, record }) => shownKey(key, record, nowMs)));
    cursor = listing?.cursor;
    if (cursor === undefined) break;
  }
  return { keys: keys.slice(0, maxKeys), isCut: keys.length > maxKeys || cursor !== undefined, lists: true };
}

function shownKey(key: string, record: IdempotencyRecord, nowMs: number): ShownKey {
  return {
    key,
    state: record.state,
    fence: record.fence,
    since: begunAtMs(record.fence, nowMs),
    reason: record.state === "held" ? record.reason : undefined,
    remainingMs: record.state === "run" && !isFailureCount(key, record) ? record.remainingMs : undefined,
    sentence: explainClaim({ key, record, nowMs }).sentence,
  };
}

/** What the stores say now of a key; of the first that has it. Undefined where none does, or none answers. */
export async function claimNow(
  stores: ReadonlyMap<string, IdempotencyStore>,
  key: string,
  nowMs: number,
): Promise<Explanation | undefined> {
  if (stores.size === 0) return undefined;
  const records = await Promise.allSettled([...stores.values()].map((store) => asked(() => store.read(key))));
  const record = records
    .map((read) => (read.status === "fulfilled" ? read.value : undefined))
    .find((found) => found !== undefined);
  const isSilent = records.some(({ status }) => status === "rejected");
  return record === undefined && isSilent ? undefined : explainClaim({ key, record, nowMs });
}

function late(): Error {
  return new Error(`no answer within ${timeoutMs} ms`);
}

async function asked<T>(ask: () => T | Promise<T>): Promise<T> {
  try {
    return await withDeadline(Promise.resolve(ask()), timeoutMs, late);
  } catch (error) {
    throw new ServiceError("store-unavailable", 503, `the store does not answer: ${messageOf(error)}`, {
      cause: error,
    });
  }
}
