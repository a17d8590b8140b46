import type {
  IdempotencyListing,
  IdempotencyListQuery,
  IdempotencyRecord,
} from "@countersign/idempotency-guard";
import { assertListQuery, damagedCursor } from "@countersign/store-core";
import { send } from "./commands.ts";
import type { ResolvedOptions } from "./options.ts";
import { plain, storedText, texts } from "./replies.ts";

/** The store whose keys are listed. */
export interface ListedStore {
  readonly name: string;
  readonly options: ResolvedOptions;
  readonly read: (key: string) => Promise<IdempotencyRecord | undefined>;
}

const cursorForm = /^\d{1,20}$/;

/** One step of SCAN, which lists every key that is there from its first step to the last, at least once. */
export async function listKeys(
  store: ListedStore,
  { state, cursor = "0", limit }: IdempotencyListQuery,
): Promise<IdempotencyListing> {
  assertListQuery(store.name, { state, limit });
  if (typeof cursor !== "string" || !cursorForm.test(cursor)) throw damagedCursor(store.name);
  const start = `${store.options.prefix}:key:`;
  const command = ["SCAN", cursor, "MATCH", `${start}*`, "COUNT", String(limit)];
  const reply = await send(store.options, command);
  if (!Array.isArray(reply) || reply.length !== 2) throw new Error(`${store.name}: SCAN gave no page`);
  const next = plain(reply[0]);
  if (!cursorForm.test(next)) throw new Error(`${store.name}: SCAN gave no cursor`);
  const keys = [...new Set(texts(reply[1]))].flatMap((found) => keyOf(found, start) ?? []);
  const records = await Promise.all(keys.map((key) => store.read(key)));
  const entries = keys.flatMap((key, position) => {
    const record = records[position];
    return record?.state === state ? [{ key, record }] : [];
  });
  return { entries, cursor: next === "0" ? undefined : next };
}

/** Undefined for a name that the store cannot have written: it is somebody else's. */
function keyOf(found: string, start: string): string | undefined {
  const key = found.startsWith(start) ? storedText(found.slice(start.length)) : undefined;
  return key !== undefined && key.length >= 1 && key.length <= 512 ? key : undefined;
}
