import assert from "node:assert/strict";
import { answerOf } from "@countersign/idempotency/internal";
import type { TaskQuery } from "@countersign/idempotency/work";
import { longLeaseMs, shortLeaseMs } from "../claims.ts";
import {
  type Work,
  type WorkCase,
  add,
  assertEndedBy,
  claim,
  claimOne,
  drain,
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
import { inTurn, needed, outcomeOf, pass } from "../waiting.ts";

const decision = { by: "anna", note: "the service is down" } as const;

// The default of the stores.
const retentionMs = 7 * 86_400_000;

/** What operators do, and what they see. */
export const workOperatorCases: readonly WorkCase[] = [
  ...workRules([], {
    async "discard ends dead tasks as done, with the decision as their last failure"(harness) {
      const { store } = harness;
      await add(harness, inOrder("a", "b", "c"));
      await inTurn(["a", "b"], (id) => kill(store, id));
      const ids = ["a", "a", "c", "unknown"];
      assert.equal(await store.work.discard("other", ids, decision), 0, "a queue of its own");
      assert.equal(await store.work.discard(queue, ids, decision), 1, "only the dead ones count, once each");
      const record = await recordOf(store, "a");
      const { state, attempts } = record;
      assert.deepEqual({ state, attempts }, { state: "done", attempts: 1 });
      assert.equal(record.failures.length, 2);
      assertEndedBy(record, "discarded by anna: the service is down");
      assert.equal(await store.work.retry(queue, { deadSinceMs: 0 }), 1, "b alone is dead");
      assert.deepEqual(await drain(harness), ["b", "c"]);
    },
    async "a paused queue gives nobody a task until it resumes; what is owned goes on"(harness) {
      const { store } = harness;
      const { work } = store;
      await add(harness, [taskOf("a")]);
      await add(harness, [taskOf("other")], "other");
      const task = await claimOne(store, "a");
      await work.pause(queue, decision);
      await add(harness, [taskOf("b")]);
      assert.deepEqual(await claim(store), []);
      assert.deepEqual(idsOf(await claim(store, { queue: "other" })), ["other"], "other queues go on");
      assert.equal(await finish(harness, task), true);
      assert.equal(await work.resume(queue), true);
      assert.equal(await work.resume(queue), false, "it is paused no more");
      assert.deepEqual(await drain(harness), ["b"]);
    },
    async "summaries tell of every queue with tasks or a pause, by name"(harness) {
      const { store } = harness;
      const { work } = store;
      await work.pause("paused", { by: "before", note: "an older decision" });
      await work.pause("paused", decision);
      await add(harness, inOrder("dead", "a", "b"));
      await add(harness, [taskOf("c")]);
      await pass(harness, 5);
      await add(harness, [taskOf("done")], "a-queue");
      await drain(harness, { queue: "a-queue" });
      const claimed = await claim(store);
      const dead = claimed.find(({ id }) => id === "dead") ?? assert.fail("it must be due");
      await work.fail(dead, { reason: "no use", retryInMs: undefined });
      const [done, paused, open, ...more] = await work.summaries();
      const none = { paused: undefined, open: 0, running: 0, dead: 0, done: 0, oldestOpenMs: undefined };
      assert.deepEqual(done, { ...none, queue: "a-queue", done: 1 });
      const { atMs, ...decided } = paused?.paused ?? assert.fail("the pause must be told");
      assert.ok(atMs > 0);
      assert.deepEqual(decided, decision, "the newer decision counts");
      assert.deepEqual({ ...paused, paused: undefined }, { ...none, queue: "paused" });
      const { oldestOpenMs, ...counts } = open ?? assert.fail("the queue must be told");
      assert.deepEqual(counts, { queue, paused: undefined, open: 3, running: 1, dead: 1, done: 0 });
      assert.ok(oldestOpenMs !== undefined && oldestOpenMs >= 5, "the age of the oldest must be told");
      assert.deepEqual(more, []);
      await work.resume("paused");
      assert.deepEqual(
        (await work.summaries()).map((summary) => summary.queue),
        ["a-queue", queue],
      );
    },
  }),
  ...workRules(["another"], {
    async "another store of the database sees tasks and pauses, and takes over silent owners"(harness) {
      const { store } = harness;
      const other = needed(await harness.another?.());
      await add(harness, inOrder("a", "b"));
      await other.work.pause(queue, decision);
      assert.deepEqual(await claim(store), []);
      assert.equal(await store.work.resume(queue), true);
      // The other store looks before it ends, also by a server's clock on a busy machine.
      const leaseMs = 20 * shortLeaseMs;
      const silent = await claimOne(store, "a", { leaseMs });
      assert.deepEqual(await claim(other), []);
      await pass(harness, leaseMs);
      const task = await claimOne(other, "a");
      assert.equal(await finish({ store }, silent), false);
      assert.equal(await finish({ store: other }, task), true);
      assert.deepEqual(await drain(harness), ["b"]);
    },
  }),
  ...workRules(["clock"], {
    async "summaries count as running what a living worker has"(harness) {
      const { store } = harness;
      const running = async () => (await store.work.summaries()).map((summary) => summary.running);
      await add(harness, [...inOrder("a", "b"), taskOf("c")]);
      assert.deepEqual(await running(), [0]);
      const [task] = await claim(store, { leaseMs: shortLeaseMs });
      assert.deepEqual(await running(), [2]);
      await pass(harness, shortLeaseMs);
      assert.deepEqual(await running(), [0], "nobody has a task whose lease has ended");
      await store.work.extend(task === undefined ? [] : [task], longLeaseMs);
      assert.deepEqual(await running(), [1]);
    },
    async "prune removes done tasks alone, once their retention has ended"(harness) {
      const { store } = harness;
      const { work } = store;
      await add(harness, inOrder("dead", "discarded", "done", "open"));
      await inTurn(["dead", "discarded"], (id) => kill(store, id));
      await work.discard(queue, ["discarded"], decision);
      assert.equal(await finish(harness, await claimOne(store, "done")), true);
      const left = async () => idsOf((await work.list({ queue, limit: 10 })).tasks);
      await harness.advance?.(retentionMs - 1);
      assert.equal(await work.prune(), 0);
      assert.deepEqual(await left(), ["dead", "discarded", "done", "open"]);
      assert.deepEqual(await add(harness, inOrder("done")), [{ status: "known", body: "body of done" }]);
      await harness.advance?.(1);
      assert.equal(await work.prune(), 2);
      assert.deepEqual(await left(), ["dead", "open"]);
      assert.deepEqual(await add(harness, inOrder("done")), [{ status: "added" }]);
      assert.deepEqual(await drain(harness), ["open", "done"]);
    },
  }),
];

/** Pages of tasks, and the newest times. */
export const workListCases = workRules([], {
  async "a list pages through the tasks of a queue in the order of adding, of one state or of all"(harness) {
    const { store } = harness;
    const ids = ["d", "b", "a", "f", "c", "e"];
    await inTurn(ids, async (id) => {
      await add(harness, inOrder(id));
      await pass(harness, 1);
    });
    await add(harness, [taskOf("other")], "other");
    await inTurn(["d", "b", "a"], (id) => kill(store, id));
    await store.work.discard(queue, ["b"], { by: "anna", note: "no use" });
    assert.deepEqual(await pagesOf(harness, { limit: 4 }), [ids.slice(0, 4), ids.slice(4)]);
    assert.deepEqual(await pagesOf(harness, { limit: 3 }), [ids.slice(0, 3), ids.slice(3)]);
    assert.deepEqual(await pagesOf(harness, { limit: 1, state: "dead" }), [["d"], ["a"]]);
    assert.deepEqual(await pagesOf(harness, { limit: 10, state: "done" }), [["b"]]);
    assert.deepEqual(await pagesOf(harness, { limit: 2, state: "open" }), [["f", "c"], ["e"]]);
    assert.deepEqual(await pagesOf(harness, { limit: 2, queue: "unknown" }), [[]]);
    const { tasks } = await store.work.list({ queue, limit: 10 });
    const read = await Promise.all(tasks.map(({ id }) => store.work.read(queue, id)));
    assert.deepEqual(tasks, read, "a list must tell what read() does");
  },
  async "a page begins after the one before, also when tasks have ended meanwhile"(harness) {
    const { work } = harness.store;
    await add(harness, inOrder("a", "b", "c", "d"));
    const { cursor } = await work.list({ queue, limit: 2, state: "open" });
    await inTurn(["a", "b", "c"], (id) => kill(harness.store, id));
    const page = await work.list({ queue, limit: 2, state: "open", cursor });
    assert.deepEqual({ ids: idsOf(page.tasks), cursor: page.cursor }, { ids: ["d"], cursor: undefined });
  },
  async "a damaged cursor is a TypeError"(harness) {
    const { work } = harness.store;
    await add(harness, inOrder("a", "b"));
    const { cursor = assert.fail("there must be another page") } = await work.list({ queue, limit: 1 });
    const damaged = [
      "",
      "x",
      "?",
      `${cursor}x`,
      ` ${cursor}`,
      Buffer.from("not a cursor").toString("base64url"),
    ];
    await inTurn(damaged, async (one) => {
      const { error } = await outcomeOf(() => work.list({ queue, limit: 1, cursor: one }));
      assert.ok(error?.thrown instanceof TypeError, `${JSON.stringify(one)} must be refused`);
    });
  },
  async "advance writes a time unless a newer one is there, each subject of a scope by itself"(harness) {
    const { store } = harness;
    const advance = (at: bigint, subject = "a", scope = "s") =>
      transact(store, (tx) => answerOf(store.work.advance(tx, { scope, subject, at })));
    // Beyond what 64 bits hold; with one digit more; before 1970.
    const beyond = 2n ** 63n;
    await inTurn([-beyond, -10n, -9n, 0n, 9n, 10n, beyond - 1n, beyond, 2n ** 64n + 1n], async (at) => {
      assert.equal(await advance(at), true, `${at} is newer`);
      assert.equal(await advance(at), true, `${at} is no older one again`);
      assert.equal(await advance(at - 1n), false, `${at - 1n} is older`);
    });
    assert.equal(await advance(1n, "b"), true, "another subject");
    assert.equal(await advance(1n, "a", "t"), true, "another scope");
    await rolledBack(store, (tx) => answerOf(store.work.advance(tx, { scope: "s", subject: "b", at: 3n })));
    assert.equal(await advance(2n, "b"), true, "what was rolled back must not count");
  },
});

async function pagesOf(
  harness: Work,
  query: Partial<TaskQuery> & Pick<TaskQuery, "limit">,
): Promise<readonly (readonly string[])[]> {
  const { tasks, cursor } = await harness.store.work.list({ queue, ...query });
  const more = cursor === undefined ? [] : await pagesOf(harness, { ...query, cursor });
  return [idsOf(tasks), ...more];
}
