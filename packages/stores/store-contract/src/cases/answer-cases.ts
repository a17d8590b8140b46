import assert from "node:assert/strict";
import type { AnswerStore } from "@countersign/idempotency";
import type { AnswerCase, AnswerStoreHarness } from "../contract.ts";
import type { Call } from "../calls.ts";
import { afterRecovery, assertThrows, withStoppedEngine } from "../engine-faults.ts";
import { hostileTexts } from "../hostile-texts.ts";
import { inTurn } from "../in-turn.ts";
import { advance, anotherOf, fillOf, outcomeOf } from "../waiting.ts";

const everyByte = Uint8Array.from({ length: 512 }, (_, index) => index % 256);
const answers: readonly (readonly [name: string, answer: Uint8Array])[] = [
  ["of every byte", everyByte],
  ["of none", new Uint8Array()],
  ["of zeros", new Uint8Array(3)],
  ["that is no UTF-8", Buffer.from([0xff, 0xfe, 0xc3, 0x28])],
  ["of 256 kB", Buffer.alloc(262_144, everyByte)],
];

/** What is kept of the answers of attempts. */
export const answerCases: readonly AnswerCase[] = [
  {
    name: "an answer is found by its token, to the byte, as often as it is looked for",
    async check({ store }) {
      assert.equal(await store.find("a"), undefined, "what was never kept must not be found");
      await inTurn(answers, async ([name, answer]) => {
        await store.keep(name, answer);
        await assertFound(store, name, answer);
        await assertFound(store, name, answer);
      });
    },
  },
  {
    name: "an answer that is kept again under its token takes the earlier one's place",
    async check({ store }) {
      await store.keep("a", Buffer.from("first"));
      await store.keep("a", Buffer.from("second"));
      await assertFound(store, "a", Buffer.from("second"));
    },
  },
  {
    name: "answers of tokens that look alike are kept apart",
    async check({ store }) {
      const numbered = [...hostileTexts.entries()];
      await inTurn(numbered, async ([index, token]) => store.keep(token, Buffer.from(`answer ${index}`)));
      await inTurn(numbered, async ([index, token]) =>
        assertFound(store, token, Buffer.from(`answer ${index}`)),
      );
      assert.equal(
        await store.find("none of these"),
        undefined,
        "a token must not find another one's answer",
      );
    },
  },
  {
    name: "an answer is what it was when it was kept, whatever becomes of the bytes",
    async check({ store }) {
      const given = Buffer.from("answer");
      await store.keep("a", given);
      given.fill(0);
      const found = await store.find("a");
      assert.deepEqual(textOf(found), "answer", "the giver may use its bytes again");
      found?.fill(0);
      assert.deepEqual(textOf(await store.find("a")), "answer", "who finds it may change what it was given");
    },
  },
  {
    name: "an answer is found through every handle as soon as it was kept",
    needs: ["another"],
    async check(harness) {
      const other = await anotherOf(harness);
      await harness.store.keep("a", everyByte);
      await assertFound(other, "a", everyByte);
      await other.keep("a", Buffer.from("second"));
      await assertFound(harness.store, "a", Buffer.from("second"));
    },
  },
  {
    name: "an answer is found until its retention ends, pruned or not, and not after it",
    needs: ["clock", "retention"],
    async check(harness) {
      const { store } = harness;
      await store.keep("a", everyByte);
      await advance(harness, retentionMsOf(harness) - 1);
      assert.equal(await store.prune(), 0, "an answer that is alive must not be pruned");
      await assertFound(store, "a", everyByte);
      await advance(harness, 1);
      assert.equal(await store.find("a"), undefined, "an answer whose retention has ended must not be found");
    },
  },
  {
    name: "an answer that is kept again begins its retention anew",
    needs: ["clock", "retention"],
    async check(harness) {
      const { store } = harness;
      await store.keep("a", everyByte);
      await advance(harness, retentionMsOf(harness) - 1);
      await store.keep("a", everyByte);
      await advance(harness, retentionMsOf(harness) - 1);
      await assertFound(store, "a", everyByte);
    },
  },
  {
    // An engine that removes them by itself has nothing to tell.
    name: "prune tells of no answer that is alive, and of none twice",
    needs: ["clock", "retention"],
    async check(harness) {
      const { store } = harness;
      await store.keep("a", everyByte);
      await store.keep("b", everyByte);
      await advance(harness, retentionMsOf(harness));
      await store.keep("c", everyByte);
      const pruned = await store.prune();
      assert.ok(pruned >= 0 && pruned <= 2, `prune must tell of what has ended alone, got ${pruned}`);
      assert.equal(await store.prune(), 0, "prune must not count what is gone");
      await assertFound(store, "c", everyByte);
    },
  },
  {
    name: "every call of a store of answers after close throws",
    needs: ["close"],
    async check({ store }) {
      await store.keep("a", everyByte);
      await store.close();
      await assertThrows(callsOf(store), "after close");
    },
  },
  {
    name: "a full store refuses a further answer by a throw, and evicts none that is alive",
    needs: ["fill"],
    async check(harness) {
      const { store } = harness;
      await store.keep("a", everyByte);
      await fillOf(harness);
      const { error } = await outcomeOf(() => store.keep("one more", Buffer.alloc(1_000, 1)));
      assert.ok(error !== undefined, "an answer that finds no room must throw");
      await assertFound(store, "a", everyByte);
    },
  },
  {
    name: "every call of a store of answers while the engine is stopped is rejected in time",
    needs: ["engine"],
    async check(harness) {
      await harness.store.keep("a", everyByte);
      await withStoppedEngine(harness, callsOf(harness.store));
    },
  },
  {
    name: "after the engine is back the store of answers works again by itself",
    needs: ["engine"],
    async check(harness) {
      const { store } = harness;
      await store.keep("kept before", everyByte);
      await withStoppedEngine(harness, []);
      await afterRecovery(harness, () => store.keep("a", everyByte));
      await assertFound(store, "a", everyByte);
    },
  },
];

/** A call of each method. */
function callsOf(store: AnswerStore): readonly Call[] {
  return [
    ["keep", () => store.keep("b", everyByte)],
    ["find", () => store.find("a")],
    ["prune", () => store.prune()],
  ];
}

async function assertFound(store: AnswerStore, token: string, answer: Uint8Array): Promise<void> {
  const found = await store.find(token);
  assert.ok(found !== undefined, `the answer of ${JSON.stringify(token)} must be found`);
  assert.ok(
    Buffer.from(answer).equals(found),
    `the answer of ${JSON.stringify(token)} must be what was kept`,
  );
}

function textOf(answer: Uint8Array | undefined): string | undefined {
  return answer === undefined ? undefined : Buffer.from(answer).toString();
}

function retentionMsOf({ store }: AnswerStoreHarness): number {
  if (store.retentionMs === undefined) throw new Error("only cases that need the retention ask for it");
  return store.retentionMs;
}
