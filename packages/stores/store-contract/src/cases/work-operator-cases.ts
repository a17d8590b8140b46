import assert from "node:assert/strict";
import { longLeaseMs, shortLeaseMs } from "../claims.ts";
import {
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
  taskOf,
} from "../tasks.ts";
import { inTurn, needed, pass } from "../waiting.ts";

const decision = { by: "anna", note: "the service is down" } as const;

// The default of the stores.
const retentionMs = 7 * 86_400_000;

/** What operators do, and what they see. */
export const workOperatorCases: readonly WorkCase[] = [
  {
    name: "discard ends dead tasks as done, with the decision as their last failure",
    async check(harness) {
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
  },
  {
    name: "a paused queue gives nobody a task until it resumes; what is owned goes on",
    async check(harness) {
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
  },
  {
    name: "another store of the database sees tasks and pauses, and takes over silent owners",
    needs: ["another"],
    async check(harness) {
      const { store } = harness;
      const other = needed(await harness.another?.());
      await add(harness, inOrder("a", "b"));
      await other.work.pause(queue, decision);
      assert.deepEqual(await claim(store), []);
      assert.equal(await store.work.resume(queue), true);
      const silent = await claimOne(store, "a", { leaseMs: shortLeaseMs });
      assert.deepEqual(await claim(other), []);
      await pass(harness, shortLeaseMs);
      const task = await claimOne(other, "a");
      assert.equal(await finish({ store }, silent), false);
      assert.equal(await finish({ store: other }, task), true);
      assert.deepEqual(await drain(harness), ["b"]);
    },
  },
  {
    name: "summaries tell of every queue with tasks or a pause, by name",
    async check(harness) {
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
  },
  {
    name: "summaries count as running what a living worker has",
    needs: ["clock"],
    async check(harness) {
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
  },
  {
    name: "prune removes done tasks alone, once their retention has ended",
    needs: ["clock"],
    async check(harness) {
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
  },
];
