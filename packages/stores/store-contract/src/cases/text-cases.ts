import assert from "node:assert/strict";
import {
  type Store,
  assertOk,
  claimBy,
  eachPage,
  fenceOf,
  fingerprintOf,
  keptOf,
  key,
  longLeaseMs,
  recordOf,
  take,
} from "../claims.ts";
import { type IdempotencyCase, idempotencyRules } from "../contract.ts";
import { hostileTexts, mistakable, oversized, shown } from "../hostile-texts.ts";
import { inTurn, outcomeOf } from "../waiting.ts";

export const textCases: readonly IdempotencyCase[] = [
  ...idempotencyRules([], {
    async "hostile keys of up to 512 characters are all taken, kept apart, and found by every step"({
      store,
    }) {
      const fences = new Map<string, number>();
      await inTurn(hostileTexts.entries(), async ([index, text]) => {
        fences.set(text, await take(store, `token-${index}`, { key: text }));
      });
      await inTurn(hostileTexts.entries(), async ([index, text]) => {
        const token = `token-${index}`;
        const rule = `the key ${shown(text)} must have its own record, which every step finds`;
        const record = { token, fence: fences.get(text), fingerprint: fingerprintOf(token) };
        assert.deepEqual(await recordOf(store, text), { state: "running", ...record }, rule);
        assertOk(await store.heartbeat(text, token, longLeaseMs), rule);
        assertOk(await store.release(text, token), rule);
        const fence = await take(store, token, { key: text });
        assertOk(await store.hold(text, token, "in doubt"), rule);
        assertOk(await store.resolve(text, "released", { fence }), rule);
        await take(store, token, { key: text });
        assertOk(await store.complete(text, token), rule);
        const { status } = await store.claim(text, claimBy("late"));
        assert.equal(status, "done", rule);
      });
    },
    async "hostile tokens, fingerprints, reasons, names and notes are given back unchanged"({ store }) {
      await inTurn(hostileTexts.entries(), async ([index, text]) => {
        const ofKey = `key-${index}`;
        // As long as the contract lets each be.
        const [fingerprint, by, reason] = [text.slice(0, 128), text.slice(0, 128), text.slice(0, 256)];
        const rule = `the text ${shown(text)} must be given back unchanged`;
        const fence = await take(store, text, { key: ofKey, fingerprint });
        const attempt = { token: text, fence, fingerprint };
        assert.deepEqual(await recordOf(store, ofKey), { state: "running", ...attempt }, rule);
        assertOk(await store.hold(ofKey, text, reason), "the owner must be able to hold its run");
        assert.deepEqual(await recordOf(store, ofKey), { state: "held", ...attempt, reason }, rule);
        const claimed = await store.claim(ofKey, claimBy("late"));
        assert.deepEqual({ ...claimed }, { status: "held", fingerprint, reason }, rule);
        assertOk(await store.resolve(ofKey, "released", { fence, by, note: text }), "it must be resolved");
        const { at: _at, ...kept } = await keptOf(store, ofKey);
        assert.deepEqual(kept, { outcome: "released", fence, reason, by, note: text }, rule);
        assertOk(await store.reopen(ofKey, { fence, by, note: text }), "it must be reopened");
        const { reopened } = await keptOf(store, ofKey);
        assert.deepEqual([reopened?.by, reopened?.note], [by, text], rule);
        const record = await store.read(ofKey);
        assert.equal(record?.state === "held" ? record.reason : undefined, reason, rule);
      });
    },
    async "a token is compared as it was given: what looks like it is a stranger's"({ store }) {
      await inTurn(mistakable.entries(), async ([index, [token, other]]) => {
        const ofKey = `key of ${index}`;
        await take(store, token, { key: ofKey });
        const rule = `the token ${shown(other)} must not stand for ${shown(token)}`;
        const { status } = await store.claim(ofKey, claimBy(other));
        assert.equal(status, "in-flight", rule);
        assert.equal(await store.heartbeat(ofKey, other, longLeaseMs), "lost", rule);
        assert.equal(await store.hold(ofKey, other, "reason"), "lost", rule);
        assert.equal(await store.release(ofKey, other), "lost", rule);
        assert.equal(await store.complete(ofKey, other), "lost", rule);
      });
    },
    async "a key, a token, a fingerprint or a reason of 10 kB is kept as it is or refused, never cut"({
      store,
    }) {
      const [first, second] = oversized;
      const rule = "a text that was not refused must be given back whole";
      const isTaken = await isAcquired(store, first, "a");
      assert.equal(await isAcquired(store, second, "b"), isTaken, "a key must not be refused by its content");
      if (isTaken) {
        assert.equal((await store.read(first))?.token, "a", "a long key must have its own record");
        assert.equal((await store.read(second))?.token, "b", "a long key must have its own record");
        assert.equal(await store.read(first.slice(0, 512)), undefined, "a long key must not be cut");
      }
      if (await isAcquired(store, "long token", first)) {
        assert.equal((await store.read("long token"))?.token, first, rule);
        assert.equal(
          await store.complete("long token", second),
          "lost",
          "another long token is a stranger's",
        );
      }
      const claim = claimBy("a", { fingerprint: first });
      if ((await outcomeOf(() => store.claim("long fingerprint", claim))).error === undefined) {
        assert.equal((await store.read("long fingerprint"))?.fingerprint, first, rule);
      }
      await take(store, "a");
      const held = await outcomeOf(() => store.hold(key, "a", first));
      const record = await recordOf(store);
      if (held.error === undefined) assert.equal(record?.state === "held" && record.reason, first, rule);
      else assert.equal(record?.state, "running", "a hold that was refused must change nothing");
    },
  }),
];

/** False also when the store throws. */
async function isAcquired(store: Store, ofKey: string, token: string): Promise<boolean> {
  const { error, value } = await outcomeOf(() => store.claim(ofKey, claimBy(token)));
  if (error !== undefined) return false;
  fenceOf(value, "a claim of an absent key must be acquired or throw");
  return true;
}

const owner = "owner";

export const listCases = idempotencyRules(["list"], {
  async "list misses no key that stays in its state while others come and go"({ store }) {
    const keys = Array.from({ length: 20 }, (_, index) => `payout-${index}`);
    await inTurn(keys, (ofKey) => take(store, owner, { key: ofKey }));
    const seen = new Set<string>();
    const left = new Set<string>();
    let turn = 0;
    await eachPage(store, { state: "running", limit: 3 }, async (entries) => {
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
  async "list gives hostile keys unchanged, on pages of any size"({ store }) {
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
});
