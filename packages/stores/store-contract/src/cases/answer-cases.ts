import assert from "node:assert/strict";
import type { AnswerStore } from "@countersign/idempotency";
import { type CaseDefinition, rules } from "../contract.ts";
import type { AnswerStoreHarness } from "../harness.ts";
import { hostileTexts, shown } from "../hostile-texts.ts";
import { inTurn, needed } from "../waiting.ts";
import { engineCases } from "./engine-cases.ts";

const everyByte = Uint8Array.from({ length: 512 }, (_, index) => index % 256);
const answers: readonly (readonly [name: string, answer: Uint8Array])[] = [
  ["of every byte", everyByte],
  ["of none", new Uint8Array()],
  ["of zeros", new Uint8Array(3)],
  ["that is no UTF-8", Buffer.from([0xff, 0xfe, 0xc3, 0x28])],
  ["of 256 kB", Buffer.alloc(262_144, everyByte)],
];

const answerRules = rules<AnswerStoreHarness<unknown>>;

export const answerCases: readonly CaseDefinition<AnswerStoreHarness<unknown>>[] = [
  ...answerRules([], {
    async "an answer is found by its token, to the byte, as often as it is looked for"({ store }) {
      assert.equal(await store.find("a"), undefined, "what was never kept must not be found");
      await inTurn(answers, async ([name, answer]) => {
        await store.keep(name, answer);
        await assertFound(store, name, answer);
        await assertFound(store, name, answer);
      });
    },
    async "an answer that is kept again under its token takes the earlier one's place"({ store }) {
      await store.keep("a", Buffer.from("first"));
      await store.keep("a", Buffer.from("second"));
      await assertFound(store, "a", Buffer.from("second"));
    },
    async "answers of tokens that look alike are kept apart"({ store }) {
      const numbered = [...hostileTexts.entries()];
      await inTurn(numbered, async ([index, token]) => store.keep(token, Buffer.from(`answer ${index}`)));
      await inTurn(numbered, ([index, token]) => assertFound(store, token, Buffer.from(`answer ${index}`)));
      assert.equal(
        await store.find("none of these"),
        undefined,
        "a token must not find another one's answer",
      );
    },
    async "an answer is what it was when it was kept, whatever becomes of the bytes"({ store }) {
      const given = Buffer.from("answer");
      await store.keep("a", given);
      given.fill(0);
      const found = await store.find("a");
      // The caller may reuse its bytes, and the finder may change what it got.
      assert.equal(Buffer.from(found ?? []).toString(), "answer", "the store must have bytes of its own");
      found?.fill(0);
      await assertFound(store, "a", Buffer.from("answer"));
    },
  }),
  ...answerRules(["another"], {
    async "an answer is found through every handle as soon as it was kept"(harness) {
      const other = needed(await harness.another?.());
      await harness.store.keep("a", everyByte);
      await assertFound(other, "a", everyByte);
    },
  }),
  ...answerRules(["clock", "retention"], {
    async "an answer is found until its retention ends, pruned or not, and not after it"(harness) {
      const { store } = harness;
      const retentionMs = needed(store.retentionMs);
      await store.keep("a", everyByte);
      await store.keep("again", everyByte);
      await harness.advance?.(retentionMs - 1);
      await store.keep("again", everyByte);
      assert.equal(await store.prune(), 0, "an answer that is alive must not be pruned");
      await assertFound(store, "a", everyByte);
      await harness.advance?.(1);
      assert.equal(await store.find("a"), undefined, "an answer whose retention has ended must not be found");
      await harness.advance?.(retentionMs - 2);
      await assertFound(store, "again", everyByte);
    },
    // An engine that removes them by itself has nothing to tell.
    async "prune tells of no answer that is alive, and of none twice"(harness) {
      const { store } = harness;
      await store.keep("a", everyByte);
      await store.keep("b", everyByte);
      await harness.advance?.(needed(store.retentionMs));
      await store.keep("c", everyByte);
      const pruned = await store.prune();
      assert.ok(pruned >= 0 && pruned <= 2, `prune must tell of what has ended alone, got ${pruned}`);
      assert.equal(await store.prune(), 0, "prune must not count what is gone");
      await assertFound(store, "c", everyByte);
    },
  }),
  ...answerRules(["transaction"], {
    async "an answer that is kept in a transaction is found once that has committed, and only then"(harness) {
      const { store } = harness;
      const ended: unknown[] = [];
      const keepIn = async (tx: unknown, token: string) => store.keepIn?.(tx, token, everyByte);
      const rolledBack = new Error("rolled back");
      const work = async (tx: unknown): Promise<void> => {
        await keepIn(tx, "rolled back");
        throw rolledBack;
      };
      await assert.rejects(
        async () => harness.transaction?.(work),
        (error) => error === rolledBack,
      );
      assert.equal(await store.find("rolled back"), undefined, "a rollback must take the answer with it");
      await harness.transaction?.(async (tx) => {
        await keepIn(tx, "committed");
        ended.push(tx);
      });
      await assertFound(store, "committed", everyByte);
      await assert.rejects(async () => keepIn(ended[0], "late"), "keepIn must throw without a transaction");
      assert.equal(await store.find("late"), undefined, "what keepIn refuses must not be kept");
    },
  }),
  ...engineCases<AnswerStore>({
    begin: async (store) => store.keep("a", everyByte),
    look: async (store) => store.find("a"),
    assertKept: (store) => assertFound(store, "a", everyByte),
    add: (store) => store.keep("one more", Buffer.alloc(1_000, 1)),
    assertAdded: (store) => assertFound(store, "one more", Buffer.alloc(1_000, 1)),
    calls: (store) => [
      ["keep", () => store.keep("b", everyByte)],
      ["find", () => store.find("a")],
      ["prune", () => store.prune()],
    ],
  }),
];

async function assertFound(store: AnswerStore, token: string, answer: Uint8Array): Promise<void> {
  const found = await store.find(token);
  assert.ok(found !== undefined, `the answer of ${shown(token)} must be found`);
  assert.ok(Buffer.from(answer).equals(found), `the answer of ${shown(token)} must be what was kept`);
}
