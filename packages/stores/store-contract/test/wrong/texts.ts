import type { Platform, Store } from "../platform.ts";
import { type WrongStores, each, instead, ownerOf, reference } from "./wrong-store.ts";
import type { IdempotencyListQuery, IdempotencyListing } from "@countersign/idempotency";

type Change = (text: string) => string;

const cutAt =
  (length: number): Change =>
  (text) =>
    text.slice(0, length);

const throughUtf8: Change = (text) => Buffer.from(text, "utf8").toString("utf8");

const upToNul: Change = (text) => text.split("\0")[0] ?? "";

const stepsOfKey = [
  ...(["claim", "read", "heartbeat", "complete", "release", "hold", "resolve", "reopen"] as const),
  "readReleased",
] as const;

function changedKeys(change: Change): (platform: Platform) => Partial<Store> {
  return ({ store }) =>
    Object.fromEntries(
      stepsOfKey.map((method) => [
        method,
        (key: string, ...others: unknown[]): unknown =>
          Reflect.apply(store[method], store, [change(key), ...others]),
      ]),
    );
}

/** Every token is changed before it is kept or compared. */
function changedTokens(change: Change): (platform: Platform) => Partial<Store> {
  return ({ store }) => ({
    claim: (key, claim) => store.claim(key, { ...claim, token: change(claim.token) }),
    heartbeat: (key, token, leaseMs) => store.heartbeat(key, change(token), leaseMs),
    complete: (key, token) => store.complete(key, change(token)),
    release: (key, token) => store.release(key, change(token)),
    hold: (key, token, reason) => store.hold(key, change(token), reason),
  });
}

/** The owner, when its token is the same without case. */
function withoutCase(platform: Platform, key: string, token: string): string {
  const owner = ownerOf(platform, key, token);
  return owner.toLowerCase() === token.toLowerCase() ? owner : token;
}

const changesOfKeys: Readonly<Record<string, Change>> = {
  "cuts keys at a NUL": upToNul,
  "keeps keys in UTF-8": throughUtf8,
  "compares keys without case": (key) => key.toLowerCase(),
  "normalises keys": (key) => key.normalize("NFC"),
  "trims keys": (key) => key.trim(),
  "reads escapes in keys": (key) => key.replaceAll(String.raw`\u0000`, "\0"),
};

type ListingChange = (listing: IdempotencyListing, query: IdempotencyListQuery) => IdempotencyListing;

function changed(change: ListingChange): (platform: Platform) => Partial<Store> {
  return ({ memory }) => ({ list: (query) => change(memory.list(query), query) });
}

/** Right: other keys of the engine can fill a page. */
export function sparsePages({ store }: Platform): Partial<Store> {
  const second = "second";
  return {
    async list({ cursor, ...query }) {
      const listing = await store.list({ ...query, cursor: cursor === second ? undefined : cursor });
      return cursor === undefined || listing === undefined ? { entries: [], cursor: second } : listing;
    },
  };
}

/** Wrong about texts, and about lists. */
export const wrongTexts: WrongStores = {
  "hostile keys of": {
    ...each(Object.entries(changesOfKeys), ([does, change]) => [does, changedKeys(change)]),
    "keeps keys as members of an object": instead("claim", ({ store }, key, claim) =>
      key in {} ? { status: "in-flight", fingerprint: "", remainingMs: 1 } : store.claim(key, claim),
    ),
    "resolves keys up to a NUL": instead("resolve", ({ store }, key, outcome, decision) =>
      store.resolve(upToNul(key), outcome, decision),
    ),
  },
  "a key, a": {
    "keeps 512 characters of a key": changedKeys(cutAt(512)),
    "keeps 512 characters of a token": changedTokens(cutAt(512)),
    "keeps 256 characters of a reason": instead("hold", ({ store }, key, token, reason) =>
      store.hold(key, token, reason.slice(0, 256)),
    ),
  },
  "hostile tokens, fing": {
    "keeps tokens in UTF-8": changedTokens(throughUtf8),
    "trims reasons": instead("hold", ({ store }, key, token, reason) =>
      store.hold(key, token, reason.trim()),
    ),
  },
  "a token is": {
    "compares tokens without case": instead("complete", (platform, key, token) =>
      platform.store.complete(key, withoutCase(platform, key, token)),
    ),
  },
  "list gives hostile": {
    "lists keys in UTF-8": instead("list", ({ memory }, query) => {
      const { entries, cursor } = memory.list(query);
      return { cursor, entries: entries.map(({ key, record }) => ({ key: throughUtf8(key), record })) };
    }),
  },
  [reference]: {
    "lists held keys among the runs": instead("list", ({ memory }, query) => {
      const listing = memory.list(query);
      if (query.state !== "running" || listing.cursor !== undefined) return listing;
      const { entries } = memory.list({ state: "held", limit: 1_000 });
      return { cursor: undefined, entries: [...listing.entries, ...entries] };
    }),
    "leaves expired runs out of the list": changed(({ entries, cursor }) => ({
      cursor,
      entries: entries.filter(({ record }) => record.state !== "running" || record.remainingMs > 0),
    })),
    "lists done keys that are forgotten": ({ memory, store }) => {
      const done = new Map<string, IdempotencyListing["entries"][number]>();
      return {
        async complete(key, token) {
          const record = memory.read(key);
          const answer = await store.complete(key, token);
          if (answer === "ok" && record !== undefined) {
            const { fence, fingerprint } = record;
            done.set(key, { key, record: { state: "done", token, fence, fingerprint } });
          }
          return answer;
        },
        list: (query) =>
          query.state === "done" ? { entries: [...done.values()], cursor: undefined } : memory.list(query),
      };
    },
  },
  "list misses no": {
    "loses the last key of a page when another page follows": changed(({ entries, cursor }) => ({
      cursor,
      entries: cursor === undefined ? entries : entries.slice(0, -1),
    })),
    "gives the same cursor again and again": changed(({ entries, cursor }) => ({
      entries,
      cursor: cursor === undefined ? undefined : "",
    })),
    "finds a page by counting the keys before it": instead("list", ({ memory }, query) => {
      const { entries } = memory.list({ state: query.state, limit: 1_000 });
      const begin = Number(query.cursor ?? 0);
      const end = begin + query.limit;
      return {
        entries: entries.slice(begin, end),
        cursor: end < entries.length ? String(end) : undefined,
      };
    }),
  },
};
