import assert from "node:assert/strict";
import { type Steps, answerOf } from "@countersign/idempotency/internal";
import type { ClaimedTask } from "@countersign/idempotency/work";
import { longLeaseMs, shortLeaseMs } from "../claims.ts";
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
import { inTurn, pass } from "../waiting.ts";

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

const reason = "the service answered 503";

/** Who owns a task, and for how long. */
export const workClaimCases = workRules([], {
  async "a claim takes tasks up to its limit, longest due first, and tells all about them"(harness) {
    const { store } = harness;
    await inTurn(["b", "c", "a"], async (id) => {
      await add(harness, [taskOf(id, id === "c" ? { entity } : {})]);
      await pass(harness, 5);
    });
    const [first, second, ...more] = await claim(store, { limit: 2, token: "mine" });
    const { addedAtMs } = await recordOf(store, "b");
    const told = {
      queue,
      id: "b",
      token: "mine",
      entity: undefined,
      body: "body of b",
      attempt: 1,
      addedAtMs,
    };
    assert.deepEqual(first, told);
    assert.deepEqual([second?.id, second?.entity, more], ["c", entity, []]);
    assert.equal((await recordOf(store, "b")).attempts, 1, "the attempt counts from the claim on");
    assert.deepEqual(idsOf(await claim(store)), ["a"]);
    assert.deepEqual(await claim(store), [], "a task that is owned must not be claimed");
  },
  async "a task whose owner fell silent is taken over, and the old owner can do nothing more"(harness) {
    const { store } = harness;
    const { work } = store;
    await add(harness, inOrder("a", "b"));
    const old = await claimOne(store, "a", { leaseMs: shortLeaseMs });
    await pass(harness, shortLeaseMs);
    const { attempt, ...task } = await claimOne(store, "a");
    assert.equal(attempt, 2);
    const record = await recordOf(store, "a");
    assert.deepEqual(
      record.failures.map((failure) => [failure.attempt, failure.reason]),
      [[1, "lease-expired"]],
      "the attempt of the lost owner must be told",
    );
    assert.equal(await finish(harness, old), false);
    assert.equal(await work.fail(old, { reason, retryInMs: undefined }), false);
    assert.equal(await work.fail(old, { reason, retryInMs: 0 }), false);
    assert.deepEqual(await work.extend([old], 1), []);
    await work.giveBack([old], 0);
    assert.deepEqual(await recordOf(store, "a"), record, "a stale token must write nothing");
    assert.deepEqual(await claim(store), [], "the task must stay the new owner's");
    assert.equal(await finish(harness, task), true);
    assert.deepEqual(await drain(harness), ["b"]);
  },
  async "extend keeps tasks with their owner, and tells which"(harness) {
    const { store } = harness;
    await add(harness, [taskOf("a"), taskOf("b"), taskOf("c")]);
    const tasks = await claim(store, { leaseMs: shortLeaseMs });
    const [kept, lost, stranger] = ["a", "b", "c"].map((id) => tasks.find((task) => task.id === id));
    if (kept === undefined || lost === undefined || stranger === undefined)
      assert.fail("all must be claimed");
    const asked = [kept, { ...stranger, token: "a stranger's" }, { ...stranger, id: "unknown" }];
    assert.deepEqual(await store.work.extend(asked, longLeaseMs), ["a"]);
    await pass(harness, shortLeaseMs);
    assert.deepEqual(new Set(idsOf(await claim(store))), new Set(["b", "c"]));
    assert.equal(await finish(harness, kept), true);
    assert.equal(await finish(harness, lost), false);
    assert.deepEqual(await store.work.extend([kept], longLeaseMs), [], "what is done must not be owned");
  },
  async "an owner that is late may still go on while nobody has taken over"(harness) {
    const { store } = harness;
    await add(harness, [taskOf("a"), taskOf("b")]);
    const tasks = await claim(store, { leaseMs: shortLeaseMs });
    await pass(harness, shortLeaseMs);
    assert.deepEqual(new Set(await store.work.extend(tasks, longLeaseMs)), new Set(["a", "b"]));
    assert.deepEqual(await claim(store), []);
    await inTurn(tasks, async (task) => assert.equal(await finish(harness, task), true));
  },
  async "a token ends what it owns, and no other task of its entity"(harness) {
    const { store } = harness;
    const { work } = store;
    await add(harness, inOrder("a", "b"));
    const task = await claimOne(store, "a");
    const behind = { ...task, id: "b" };
    const before = await recordOf(store, "b");
    assert.equal(await finish(harness, behind), false);
    assert.equal(await work.fail(behind, { reason, retryInMs: undefined }), false);
    assert.deepEqual(await work.extend([behind], 1), []);
    await work.giveBack([behind], 0);
    assert.deepEqual(await recordOf(store, "b"), before, "what is not owned must stay as it is");
    assert.deepEqual(await claim(store), [], "the task must stay its owner's");
    assert.equal(await finish(harness, task), true);
    assert.deepEqual(await drain(harness), ["b"]);
  },
  async "a dead task that is retried waits for the owner of a later one of its entity"(harness) {
    const { store } = harness;
    await add(harness, inOrder("a", "b", "c"));
    await kill(store, "a");
    const later = await claimOne(store, "b", { leaseMs: shortLeaseMs });
    assert.equal(await store.work.retry(queue, { ids: ["a"] }), 1);
    assert.equal(await finish(harness, { ...later, id: "a" }), false, "the token is not the older one's");
    assert.deepEqual(await store.work.extend([later], longLeaseMs), ["b"]);
    assert.deepEqual(await claim(store), [], "of one entity at most one task may be owned");
    assert.equal(await finish(harness, later), true);
    assert.equal((await recordOf(store, "b")).state, "done");
    assert.deepEqual(await drain(harness), ["a", "c"]);
  },
  async "a dead task that is retried waits for no pause of a later one of its entity"(harness) {
    const { store } = harness;
    const { work } = store;
    const pauses: readonly (readonly [how: string, pause: (task: ClaimedTask) => Promise<unknown>])[] = [
      ["fails", (task) => work.fail(task, { reason, retryInMs: longLeaseMs })],
      ["is given back", (task) => work.giveBack([task], longLeaseMs)],
    ];
    await inTurn(pauses, async ([how, pause]) => {
      const [first, later] = [`first, before one that ${how}`, `one that ${how}`];
      await add(harness, [taskOf(first, { entity: how }), taskOf(later, { entity: how })]);
      await kill(store, first);
      const task = await claimOne(store, later);
      assert.equal(await work.retry(queue, { ids: [first] }), 1);
      await pause(task);
      assert.deepEqual(await drain(harness), [first], "the retried one alone must be due");
    });
  },
});
