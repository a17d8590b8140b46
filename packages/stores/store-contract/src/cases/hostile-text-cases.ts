import assert from "node:assert/strict";
import {
  type Store,
  assertOk,
  claimBy,
  fenceOf,
  fingerprintOf,
  keptOf,
  key,
  longLeaseMs,
  recordOf,
  take,
} from "../claims.ts";
import { hostileTexts, mistakable, oversized } from "../hostile-texts.ts";
import type { IdempotencyCase } from "../contract.ts";
import { inTurn } from "../in-turn.ts";
import { completeAlone } from "../transactions.ts";
import { outcomeOf } from "../waiting.ts";

/** Keys, tokens, fingerprints and reasons are kept as they were given. */
export const hostileTextCases: readonly IdempotencyCase[] = [
  {
    name: "hostile keys of up to 512 characters are all taken, and kept apart",
    async check({ store }) {
      const owners = hostileTexts.map((text, index) => ({ text, token: `token-${index}` }));
      const fences = new Map<string, number>();
      await inTurn(owners, async ({ text, token }) => {
        fences.set(token, await take(store, token, { key: text }));
      });
      await inTurn(owners, async ({ text, token }) => {
        const record = { token, fence: fences.get(token), fingerprint: fingerprintOf(token) };
        const rule = `the key ${shown(text)} must have its own record`;
        assert.deepEqual(await recordOf(store, text), { state: "run", ...record }, rule);
        assertOk(await store.complete(text, token), rule);
        const { status } = await store.claim(text, claimBy("late"));
        assert.equal(status, "done", rule);
      });
    },
  },
  {
    name: "hostile tokens, fingerprints and reasons are given back unchanged",
    async check({ store }) {
      // The contract lets a fingerprint have 128 characters and a reason 256; a token is as long as a key.
      const texts = hostileTexts.map((text, index) => ({ text, ofKey: `key-${index}` }));
      await inTurn(texts, async ({ text, ofKey }) => {
        const [fingerprint, reason] = [text.slice(0, 128), text.slice(0, 256)];
        const fence = await take(store, text, { key: ofKey, fingerprint });
        const rule = `the text ${shown(text)} must be given back unchanged`;
        assert.deepEqual(
          await recordOf(store, ofKey),
          { state: "run", token: text, fence, fingerprint },
          rule,
        );
        assertOk(await store.hold(ofKey, text, reason), "the owner must be able to hold its run");
        const held = { state: "held", token: text, fence, fingerprint, reason };
        assert.deepEqual(await recordOf(store, ofKey), held, rule);
        const claimed = await store.claim(ofKey, claimBy("late"));
        assert.deepEqual({ ...claimed }, { status: "held", fingerprint, reason }, rule);
      });
    },
  },
  {
    name: "every step finds a hostile key, and ends it",
    async check({ store }) {
      await inTurn(hostileTexts, async (text) => {
        const rule = `the key ${shown(text)} must be found by every step`;
        await take(store, "a", { key: text });
        assertOk(await store.heartbeat(text, "a", longLeaseMs), rule);
        assertOk(await store.release(text, "a"), rule);
        const fence = await take(store, "b", { key: text });
        assertOk(await store.hold(text, "b", "in doubt"), rule);
        assertOk(await store.resolve(text, "released", { fence }), rule);
        await take(store, "c", { key: text });
      });
    },
  },
  {
    name: "completeIn finds hostile keys, and compares hostile tokens as they were given",
    needs: ["transaction"],
    async check(harness) {
      const { store } = harness;
      await inTurn(hostileTexts, async (text) => {
        const rule = `the text ${shown(text)} must be known in a transaction`;
        await take(store, text, { key: text });
        assertOk(await completeAlone(harness, text, text), rule);
        assert.equal((await store.read(text))?.state, "done", rule);
      });
      await inTurn(mistakable.entries(), async ([index, [token, other]]) => {
        const ofKey = `key of ${index}`;
        await take(store, token, { key: ofKey });
        const rule = `the token ${shown(other)} must not stand for ${shown(token)} in a transaction`;
        assert.equal(await completeAlone(harness, other, ofKey), "lost", rule);
        assert.equal((await store.read(ofKey))?.state, "run", rule);
      });
    },
  },
  {
    name: "a token is compared as it was given: what looks like it is a stranger's",
    async check({ store }) {
      await inTurn(mistakable, async ([token, other]) => {
        const ofKey = `key of ${mistakable.findIndex((pair) => pair[0] === token && pair[1] === other)}`;
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
  },
  {
    name: "a key of 10 kB is taken as it is or refused, never cut",
    async check({ store }) {
      const [first, second] = oversized;
      if (!(await isTaken(store, first, "a"))) {
        assert.ok(!(await isTaken(store, second, "b")), "a key must not be refused by its content");
        return;
      }
      await take(store, "b", { key: second });
      assert.equal((await store.read(first))?.token, "a", "a long key must have its own record");
      assert.equal((await store.read(second))?.token, "b", "a long key must have its own record");
      assert.equal(await store.read(first.slice(0, 512)), undefined, "a long key must not be cut");
    },
  },
  {
    name: "a token, a fingerprint or a reason of 10 kB is kept as it is or refused, never cut",
    async check({ store }) {
      const [first, second] = oversized;
      const rule = "a text that was not refused must be given back whole";
      if (await isTaken(store, "long token", first)) {
        assert.equal((await store.read("long token"))?.token, first, rule);
        assert.equal(
          await store.complete("long token", second),
          "lost",
          "another long token is a stranger's",
        );
      }
      const result = await outcomeOf(() =>
        store.claim("long fingerprint", claimBy("a", { fingerprint: first })),
      );
      if (result.error === undefined) {
        assert.equal((await store.read("long fingerprint"))?.fingerprint, first, rule);
      }
      await take(store, "a");
      const held = await outcomeOf(() => store.hold(key, "a", first));
      const record = await recordOf(store);
      if (held.error === undefined) assert.equal(record?.state === "held" && record.reason, first, rule);
      else assert.equal(record?.state, "run", "a hold that was refused must change nothing");
    },
  },
  {
    name: "hostile names, notes and reasons of a decision are given back unchanged",
    async check({ store }) {
      const texts = hostileTexts.map((text, index) => ({ text, ofKey: `key-${index}` }));
      await inTurn(texts, async ({ text, ofKey }) => {
        const [by, reason] = [text.slice(0, 128), text.slice(0, 256)];
        const fence = await take(store, "a", { key: ofKey });
        await store.hold(ofKey, "a", reason);
        assertOk(await store.resolve(ofKey, "released", { fence, by, note: text }), "it must be resolved");
        const rule = `the text ${JSON.stringify(text.slice(0, 40))} must be given back unchanged`;
        const { at: _at, ...kept } = await keptOf(store, ofKey);
        assert.deepEqual(kept, { outcome: "released", fence, reason, by, note: text }, rule);
        assertOk(await store.reopen(ofKey, { fence, by, note: text }), "it must be reopened");
        const { reopened } = await keptOf(store, ofKey);
        assert.deepEqual([reopened?.by, reopened?.note], [by, text], rule);
        const record = await store.read(ofKey);
        assert.equal(record?.state === "held" ? record.reason : undefined, reason, rule);
      });
    },
  },
];

/** Whether the claim was acquired; false when it was refused by a throw, and then the key must be absent. */
async function isTaken(store: Store, ofKey: string, token: string): Promise<boolean> {
  const { error, value } = await outcomeOf(() => store.claim(ofKey, claimBy(token)));
  if (error !== undefined || value === undefined) return false;
  fenceOf(value, "a claim of an absent key must be acquired or throw");
  return true;
}

/** Of texts that a terminal cannot show. */
function shown(text: string): string {
  const quoted = JSON.stringify(text);
  return quoted.length > 60 ? `${quoted.slice(0, 60)}... (${text.length} characters)` : quoted;
}
