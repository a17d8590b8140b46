import assert from "node:assert/strict";
import type { IdempotencyListing, IdempotencyListQuery } from "@countersign/idempotency";
import { type Store, take } from "../claims.ts";
import type { IdempotencyCase } from "../contract.ts";
import { hostileTexts } from "../hostile-texts.ts";
import { inTurn } from "../waiting.ts";

const owner = "owner";

// An engine that keeps other keys too may give many pages, some of them empty.
const listingMs = 20_000;

export const listCases: readonly IdempotencyCase[] = [
  {
    name: "list misses no key that stays in its state while others come and go",
    needs: ["list"],
    async check({ store }) {
      const keys = Array.from({ length: 20 }, (_, index) => `payout-${index}`);
      await inTurn(keys, (ofKey) => take(store, owner, { key: ofKey }));
      const seen = new Set<string>();
      const left = new Set<string>();
      let turn = 0;
      await eachPage(store, { state: "run", limit: 3 }, async (entries) => {
        for (const entry of entries) seen.add(entry.key);
        // The first key of each page goes, and later on others come in front and behind.
        const leaving = entries[0]?.key;
        if (leaving !== undefined && (await store.release(leaving, owner)) === "ok") left.add(leaving);
        if (turn >= 3 && turn < 6) {
          await take(store, owner, { key: `a-new-${turn}` });
          await take(store, owner, { key: `z-new-${turn}` });
        }
        turn += 1;
      });
      const missed = keys.filter((ofKey) => !left.has(ofKey) && !seen.has(ofKey));
      assert.deepEqual(missed, [], "keys that stayed in the state must all be listed");
    },
  },
  {
    name: "list gives hostile keys unchanged, on pages of any size",
    needs: ["list"],
    async check({ store }) {
      await inTurn(hostileTexts, async (text) => {
        await take(store, owner, { key: text });
        await store.hold(text, owner, "in doubt");
      });
      await take(store, owner, { key: "running" });
      await inTurn([1, 7, hostileTexts.length, 1_000], async (limit) => {
        const listed = new Set<string>();
        await eachPage(store, { state: "held", limit }, async (entries) => {
          for (const entry of entries) listed.add(entry.key);
        });
        const rule = `every held key must be listed as it was given, in pages of ${limit}`;
        assert.deepEqual(listed, new Set(hostileTexts), rule);
      });
    },
  },
];

export async function eachPage(
  store: Store,
  { state, limit }: Pick<IdempotencyListQuery, "state" | "limit">,
  use: (entries: IdempotencyListing["entries"]) => Promise<void>,
): Promise<void> {
  const deadline = performance.now() + listingMs;
  const cursors = new Set<string>();
  let cursor: string | undefined;
  do {
    // oxlint-disable-next-line no-await-in-loop -- a page is found by the cursor of the one before
    const listing: IdempotencyListing | undefined = await store.list?.({ state, limit, cursor });
    // oxlint-disable-next-line no-await-in-loop -- what happens between two pages
    await use(listing?.entries ?? []);
    cursor = listing?.cursor;
    if (cursor === undefined) return;
    assert.ok(!cursors.has(cursor), "a cursor of list must lead to a further page, not back");
    cursors.add(cursor);
  } while (performance.now() < deadline);
  assert.fail(`the pages must come to an end within ${listingMs} ms`);
}
