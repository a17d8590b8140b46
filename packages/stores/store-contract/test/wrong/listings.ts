import type { IdempotencyListing, IdempotencyListQuery } from "@countersign/idempotency";
import type { Platform, Store } from "../platform.ts";
import type { WrongStore } from "./wrong-store.ts";

type Change = (listing: IdempotencyListing, query: IdempotencyListQuery) => IdempotencyListing;

function changed(change: Change): (platform: Platform) => Partial<Store> {
  return ({ memory }) => ({ list: (query) => change(memory.list(query), query) });
}

/** Right: other keys of the engine can fill a page. */
export function sparsePages({ store }: Platform): Partial<Store> {
  const second = "second";
  return {
    async list({ cursor, ...query }) {
      const listing = await store.list?.({ ...query, cursor: cursor === second ? undefined : cursor });
      return cursor === undefined || listing === undefined ? { entries: [], cursor: second } : listing;
    },
  };
}

export const wrongListings: readonly WrongStore[] = [
  {
    does: "lists held keys among the runs",
    wrong: ({ memory }) => ({
      list(query) {
        const listing = memory.list(query);
        if (query.state !== "run" || listing.cursor !== undefined) return listing;
        const { entries } = memory.list({ state: "held", limit: 1_000 });
        return { cursor: undefined, entries: [...listing.entries, ...entries] };
      },
    }),
  },
  {
    does: "leaves expired runs out of the list",
    wrong: changed(({ entries, cursor }) => ({
      cursor,
      entries: entries.filter(({ record }) => record.state !== "run" || record.remainingMs > 0),
    })),
  },
  {
    does: "loses the last key of a page when another page follows",
    fails: "list misses no",
    wrong: changed(({ entries, cursor }) => ({
      cursor,
      entries: cursor === undefined ? entries : entries.slice(0, -1),
    })),
  },
  {
    does: "gives the same cursor again and again",
    fails: "list misses no",
    wrong: changed(({ entries, cursor }) => ({ entries, cursor: cursor === undefined ? undefined : "" })),
  },
  {
    does: "finds a page by counting the keys before it",
    fails: "list misses no",
    wrong: ({ memory }) => ({
      list(query) {
        const { entries } = memory.list({ state: query.state, limit: 1_000 });
        const begin = Number(query.cursor ?? 0);
        const end = begin + query.limit;
        return {
          entries: entries.slice(begin, end),
          cursor: end < entries.length ? String(end) : undefined,
        };
      },
    }),
  },
  {
    does: "lists done keys that are forgotten",
    wrong: ({ memory, store }) => {
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
];
