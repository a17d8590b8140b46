import assert from "node:assert/strict";
import type { TransactionClaim } from "@countersign/idempotency";
import { key } from "../claims.ts";
import { hostileTexts, mistakable } from "../hostile-texts.ts";
import {
  type Payments,
  claimOf,
  doNothing,
  keyOf,
  nonceOf,
  pay,
  paymentRules,
  refuse,
  statusesOf,
  writtenBy,
} from "../payments.ts";
import { inTurn, outcomeOf } from "../waiting.ts";

/** What a claim holds: many keys, hostile texts, and what is unfit. */
export const beginTextCases = paymentRules([], {
  async "a thousand keys are begun in one claim"(harness) {
    await assertAll(
      harness,
      Array.from({ length: 1_000 }, (_none, index) => `event-${index}`),
    );
  },
  async "hostile keys are begun, kept apart and found again"(harness) {
    const texts = [...new Set([...hostileTexts, ...mistakable.flat()])];
    await assertAll(harness, texts);
    await inTurn(texts, async (text) => {
      const record = await harness.store.idempotency.read(text);
      assert.equal(record?.token, "first", "lease mode must find the key by the same text");
    });
  },
  async "hostile tokens, fingerprints and nonces are found again as they were given"(harness) {
    const { idempotency, nonces } = harness.store;
    const claims = hostileTexts.map((text, index) =>
      claimOf([{ key: `key ${index}`, token: text, fingerprint: text.slice(0, 128) }], {
        nonce: { ...nonceOf(text), scope: text, token: text },
      }),
    );
    await inTurn(claims, async (claim) => {
      const [one = keyOf("none")] = claim.keys;
      const begun = await pay(harness, claim, doNothing);
      assert.deepEqual(begun, { nonce: "fresh", keys: [{ status: "begun" }] });
      const { token, fingerprint } = (await idempotency.read(one.key)) ?? {};
      assert.deepEqual({ token, fingerprint }, { token: one.token, fingerprint: one.fingerprint });
    });
    await inTurn(claims, async ({ nonce = nonceOf("none") }) => {
      const answer = await nonces.claim({ ...nonce, token: "another request's" });
      assert.equal(answer, "seen", "the nonce must be found by the same text");
    });
    const refused = hostileTexts.map((text, index) => keyOf(text, `refused ${index}`));
    await refuse(harness, claimOf(refused, { nonce: undefined }), doNothing);
    assert.equal(await idempotency.read("refused 0"), undefined, "the keys must be free");
  },
  async "an unfit claim is a TypeError, and nothing is written"(harness) {
    const [one, nonce] = [keyOf("a"), nonceOf("unfit")];
    const unfit: Readonly<Record<string, Partial<TransactionClaim>>> = {
      "a key twice": { keys: [one, keyOf("b")] },
      "an empty key": { keys: [one, { ...one, key: "" }] },
      "a key of 513 characters": { keys: [one, { ...one, key: "k".repeat(513) }] },
      "an empty fingerprint": { keys: [{ ...one, fingerprint: "" }] },
      "a nonce without a scope": { nonce: { ...nonce, scope: "" } },
      "a nonce without a token": { nonce: { ...nonce, token: "" } },
    };
    await inTurn(Object.entries(unfit), async ([what, more]) => {
      const { error } = await outcomeOf(() => pay(harness, claimOf([one], { nonce: undefined, ...more })));
      assert.ok(error?.thrown instanceof TypeError, `${what} must be a TypeError`);
    });
    assert.equal(await harness.store.idempotency.read(key), undefined, "the key must be free");
    assert.deepEqual(await writtenBy(harness), []);
  },
});

/** Begins all these keys in one claim; then all are done for another one. */
async function assertAll(harness: Payments, texts: readonly string[]): Promise<void> {
  const statusesBy = async (token: string) => {
    const keys = texts.map((text) => keyOf(token, text));
    return statusesOf(await pay(harness, claimOf(keys), doNothing));
  };
  const begun = texts.map(() => "begun");
  assert.deepEqual(await statusesBy("first"), begun, "all of them must be begun");
  assert.deepEqual(new Set(await statusesBy("second")), new Set(["done"]), "all of them must be done");
}
