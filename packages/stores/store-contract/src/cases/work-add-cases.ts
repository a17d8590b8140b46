import assert from "node:assert/strict";
import { type Steps, answerOf } from "@countersign/idempotency/door";
import { longLeaseMs } from "../claims.ts";
import { writtenBy } from "../payments.ts";
import {
  type WorkCase,
  add,
  claim,
  claimOne,
  drain,
  entity,
  finish,
  idsOf,
  inOrder,
  kill,
  queue,
  recordOf,
  rolledBack,
  taskOf,
  transact,
  workRules,
} from "../tasks.ts";
import { inTurn } from "../waiting.ts";

const added = { status: "added" } as const;
const known = (id: string) => ({ status: "known", body: `body of ${id}` });

/** What add() writes, and in which order it is worked on. */
export const workAddCases: readonly WorkCase[] = [
  ...workRules([], {
    async "tasks commit with what their transaction wrote, and a rolled-back add leaves nothing"(harness) {
      const { store } = harness;
      const adding = function* adding(tx: unknown): Steps<unknown> {
        yield* answerOf(harness.write(tx, "cause"));
        return yield* answerOf(store.work.add(tx, queue, [taskOf("a"), ...inOrder("b")]));
      };
      await rolledBack(store, adding);
      assert.deepEqual(await writtenBy(harness), []);
      assert.deepEqual(await claim(store), [], "nothing must be claimed that did not commit");
      assert.equal(await store.work.read(queue, "a"), undefined);
      assert.deepEqual(await store.work.summaries(), []);
      assert.deepEqual(await transact(store, adding), [added, added], "the ids must be free");
      assert.deepEqual(await writtenBy(harness), ["cause"]);
      assert.deepEqual(new Set(await drain(harness)), new Set(["a", "b"]));
    },
    async "a known id is answered with its body, whatever its state, and nothing is added"(harness) {
      const { store } = harness;
      const answers = [known("a")];
      const assertKnown = async (state: string) => {
        const before = await store.work.read(queue, "a");
        assert.deepEqual(
          await add(harness, [taskOf("a", { body: "another", entity: "another" })]),
          answers,
          state,
        );
        assert.deepEqual(await store.work.read(queue, "a"), before, `${state}: the task must stay as it was`);
      };
      await add(harness, inOrder("a"));
      await assertKnown("open");
      await kill(store, "a");
      await assertKnown("dead");
      await store.work.retry(queue, { ids: ["a"] });
      const task = await claimOne(store, "a");
      await assertKnown("owned");
      assert.equal(await finish(harness, task), true);
      await assertKnown("done");
      assert.deepEqual(await claim(store), [], "a done task must never run again");
      assert.deepEqual(await add(harness, [taskOf("b", { entity: "another" })]), [added]);
      assert.deepEqual(await drain(harness), ["b"], "the entity of what was known must not be stuck");
    },
    async "of several tasks each is answered for itself, in their order; of none, none"(harness) {
      await add(harness, [taskOf("m"), ...inOrder("b")]);
      const answers = await add(harness, [taskOf("z"), taskOf("m"), ...inOrder("a", "b", "c")]);
      assert.deepEqual(answers, [added, known("m"), added, known("b"), added]);
      assert.deepEqual(await add(harness, []), []);
    },
    async "tasks of an entity run one after another, in the order of their array and of adding"(harness) {
      const { store } = harness;
      await add(harness, inOrder("z", "a", "m"));
      await transact(store, function* adding(tx): Steps<void> {
        yield* answerOf(store.work.add(tx, queue, inOrder("y")));
        yield* answerOf(store.work.add(tx, queue, inOrder("b", "x")));
      });
      const task = await claimOne(store, "z");
      assert.deepEqual(await claim(store), [], "of one entity at most one task may be owned");
      assert.equal(await finish(harness, task), true);
      await add(harness, inOrder("c"));
      assert.deepEqual(await drain(harness), ["a", "m", "y", "b", "x", "c"]);
      await add(harness, inOrder("w", "d"));
      assert.deepEqual(await drain(harness), ["w", "d"], "also once the entity had no task left");
    },
    async "entities run side by side, as do tasks without one; an id is no entity, and queues are apart"(
      harness,
    ) {
      const { store } = harness;
      const tasks = [
        ...["x", "ex", "tx"].map((id) => taskOf(id)),
        ...["x", "ex", "tx", "y"].map((name, index) => taskOf(String(index), { entity: name })),
      ];
      await add(harness, tasks);
      await add(harness, [taskOf("x", { entity: "x", body: "other" })], "other");
      const claimed = await claim(store);
      assert.deepEqual(new Set(idsOf(claimed)), new Set(idsOf(tasks)));
      const [other] = await claim(store, { queue: "other" });
      assert.equal(other?.body, "other");
      const x = claimed.find(({ id }) => id === "x") ?? assert.fail("the id must be among the claimed");
      assert.equal(await finish(harness, { ...x, queue: "other" }), false, "a token counts in its queue");
      assert.equal(await finish(harness, x), true);
      assert.equal((await recordOf(store, "x", "other")).state, "open");
      assert.equal(await finish(harness, other), true);
    },
  }),
  ...workRules(["clock"], {
    async "a delayed task is not due before its time, and later tasks of its entity wait too"(harness) {
      const { store } = harness;
      await add(harness, [
        taskOf("late", { entity, delayMs: longLeaseMs }),
        ...inOrder("behind"),
        taskOf("other"),
      ]);
      const { addedAtMs, dueAtMs } = await recordOf(store, "late");
      assert.equal(dueAtMs, addedAtMs + longLeaseMs, "not before is the time of adding and the delay");
      assert.deepEqual(await drain(harness), ["other"]);
      await harness.advance?.(longLeaseMs - 1);
      await add(harness, inOrder("last"));
      assert.deepEqual(await drain(harness), []);
      await harness.advance?.(1);
      assert.deepEqual(await drain(harness), ["late", "behind", "last"]);
    },
    async "a delayed task after another one waits for its own time"(harness) {
      const ends = ["done", "dead"] as const;
      await inTurn(ends, async (end) => {
        await add(harness, [
          taskOf(`first ${end}`, { entity: end }),
          taskOf(end, { entity: end, delayMs: longLeaseMs }),
        ]);
        if (end === "done") assert.deepEqual(await drain(harness), ["first done"]);
        else await kill(harness.store, "first dead");
        assert.deepEqual(await claim(harness.store), [], "it must not be due yet");
      });
      await harness.advance?.(longLeaseMs);
      assert.deepEqual(new Set(await drain(harness)), new Set(ends));
    },
  }),
];
