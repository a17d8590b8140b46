import assert from "node:assert/strict";
import type { IdempotencyListing, IdempotencyListQuery, IdempotencyRecord } from "@countersign/idempotency";
import { type Known, type Store, knownOf, take } from "../claims.ts";
import { hostileTexts } from "../hostile-texts.ts";
import type { IdempotencyCase } from "../contract.ts";
import { inTurn } from "../in-turn.ts";
import { owner } from "../states.ts";

// An engine that keeps other keys too may give many pages, some of them empty.
const listingMs = 20_000;

/** The keys in a state, for an operator. */
export const listCases: readonly IdempotencyCase[] = [
  {
    name: "list leads through all pages of a state, whatever their size",
    needs: ["list"],
    async check({ store }) {
      const keys = Array.from({ length: 25 }, (_, index) => `payout-${index}`);
      await inTurn(keys, async (ofKey) => {
        await take(store, owner, { key: ofKey });
        await store.hold(ofKey, owner, `reason of ${ofKey}`);
      });
      await take(store, owner, { key: "running" });
      await inTurn([1, 2, 7, 25, 1_000], async (limit) => {
        const listed = await listAll(store, "held", limit);
        const rule = `every held key must be listed, in pages of ${limit}`;
        assert.deepEqual(new Set(listed.keys()), new Set(keys), rule);
      });
    },
  },
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
    name: "list gives hostile keys unchanged",
    needs: ["list"],
    async check({ store }) {
      await inTurn(hostileTexts, async (text) => {
        await take(store, owner, { key: text });
        await store.hold(text, owner, "in doubt");
      });
      const listed = await listAll(store, "held", 7);
      assert.deepEqual(
        new Set(listed.keys()),
        new Set(hostileTexts),
        "every key must be listed as it was given",
      );
    },
  },
];

async function page(store: Store, query: IdempotencyListQuery): Promise<IdempotencyListing> {
  if (store.list === undefined) throw new Error("only cases that need the list ask for it");
  return store.list(query);
}

/** Each page in its turn. Fails when the cursors lead nowhere. */
async function eachPage(
  store: Store,
  query: Pick<IdempotencyListQuery, "state" | "limit">,
  use: (entries: IdempotencyListing["entries"]) => Promise<void>,
): Promise<void> {
  const { state, limit } = query;
  const deadline = performance.now() + listingMs;
  const cursors = new Set<string>();
  let cursor: string | undefined;
  do {
    // oxlint-disable-next-line no-await-in-loop -- a page is found by the cursor of the one before
    const listing: IdempotencyListing = await page(store, { state, limit, cursor });
    // oxlint-disable-next-line no-await-in-loop -- what happens between two pages
    await use(listing.entries);
    ({ cursor } = listing);
    if (cursor === undefined) return;
    assert.ok(!cursors.has(cursor), "a cursor must lead to a further page, not back");
    cursors.add(cursor);
  } while (performance.now() < deadline);
  assert.fail(`the pages must come to an end within ${listingMs} ms`);
}

async function listAll(
  store: Store,
  state: IdempotencyRecord["state"],
  limit: number,
): Promise<Map<string, Known>> {
  const listed = new Map<string, Known>();
  await eachPage(store, { state, limit }, async (entries) => {
    for (const { key, record } of entries) listed.set(key, knownOf(record));
  });
  return listed;
}
