import type {
  IdempotencyListing,
  IdempotencyListQuery,
  IdempotencyRecord,
} from "@countersign/idempotency-guard";
import { assertListQuery, damagedCursor, decodeText } from "@countersign/store-core";
import { send } from "./commands.ts";
import type { ResolvedOptions } from "./options.ts";
import { plain, texts } from "./replies.ts";

/** The store whose keys are listed. */
export interface ListedStore {
  readonly name: string;
  readonly options: ResolvedOptions;
  readonly read: (key: string) => Promise<IdempotencyRecord | undefined>;
}

/** One step of SCAN, which lists every key that is there from its first step to the last, at least once. */
export async function listKeys(
  store: ListedStore,
  { state, cursor = "0", limit }: IdempotencyListQuery,
): Promise<IdempotencyListing> {
  assertListQuery(store.name, { state, limit });
  if (typeof cursor !== "string" || !/^\d{1,20}$/.test(cursor)) throw damagedCursor(store.name);
  const start = `${store.options.prefix}:key:`;
  const command = ["SCAN", cursor, "MATCH", `${start}*`, "COUNT", String(limit)];
  const reply = await send(store.options, command);
  if (!Array.isArray(reply) || reply.length !== 2) throw new Error(`${store.name}: SCAN gave no page`);
  const next = plain(reply[0]);
  const keys = [...new Set(texts(reply[1]))].map((found) => decodeText(found.slice(start.length)));
  const records = await Promise.all(keys.map((key) => store.read(key)));
  const entries = keys.flatMap((key, position) => {
    const record = records[position];
    return record?.state === state ? [{ key, record }] : [];
  });
  return { entries, cursor: next === "0" ? undefined : next };
}
