import assert from "node:assert/strict";
import { type Steps, answerOf } from "@countersign/idempotency/internal";
import { longLeaseMs, shortLeaseMs } from "../claims.ts";
import { claimOf, writtenBy } from "../payments.ts";
import {
  type WorkCase,
  add,
  assertEndedBy,
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
import { inTurn, outcomeOf, pass } from "../waiting.ts";

/** How an attempt ends. */
export const workEndCases: readonly WorkCase[] = [
  ...workRules([], {
    async "a task is done with what its transaction wrote, once; rolled back, it stays its owner's"(harness) {
      const { store } = harness;
      const { transactions, work } = store;
      await add(harness, inOrder("a"));
      const task = await claimOne(store, "a", { leaseMs: shortLeaseMs });
      const ending = function* ending(tx: unknown): Steps<boolean> {
        yield* answerOf(transactions.begin(tx, claimOf([], { nonce: undefined })));
        yield* answerOf(harness.write(tx, "effect"));
        const ended = yield* answerOf(work.finish(tx, task));
        yield* answerOf(transactions.keep(tx, [], false));
        return ended;
      };
      const before = await recordOf(store, "a");
      await rolledBack(store, ending);
      assert.deepEqual(await recordOf(store, "a"), before, "it must be open as before");
      assert.deepEqual(await work.extend([task], longLeaseMs), ["a"], "it must be its owner's as before");
      assert.equal(await transact(store, ending), true);
      assert.deepEqual(await writtenBy(harness), ["effect"]);
      const { state, attempts, failures, dueAtMs, endedAtMs = 0 } = await recordOf(store, "a");
      assert.deepEqual(
        { state, attempts, failures, dueAtMs },
        { state: "done", attempts: 1, failures: [], dueAtMs: undefined },
      );
      assert.ok(endedAtMs >= before.addedAtMs, "the end must be told");
      const reason = "too late";
      assert.equal(await finish(harness, task), false, "a done task is owned no more");
      assert.equal(await work.fail(task, { reason, retryInMs: 0 }), false);
      await work.giveBack([task], 0);
      assert.equal(await work.retry(queue, { ids: ["a"] }), 0, "what is done is not dead");
      await pass(harness, shortLeaseMs);
      assert.deepEqual(await claim(store), [], "a done task must never run again");
    },
    async "after a failure behind it in the same transaction a task is its owner's, and what it wrote is gone"(
      harness,
    ) {
      const { store } = harness;
      const { transactions, work } = store;
      await add(harness, [taskOf("a")]);
      const task = await claimOne(store, "a");
      const failure = new Error("the handler failed");
      const failing = transact(store, function* failing(tx): Steps<void> {
        yield* answerOf(transactions.begin(tx, claimOf([], { nonce: undefined })));
        yield* answerOf(harness.write(tx, "effect"));
        yield* answerOf(work.finish(tx, task));
        yield* answerOf(transactions.assertOpen(tx, []));
        throw failure;
      });
      assert.equal((await outcomeOf(() => failing)).error?.thrown, failure);
      assert.deepEqual(await writtenBy(harness), []);
      assert.deepEqual(await claim(store), []);
      assert.equal(await finish(harness, task), true);
    },
    async "a task without another attempt is dead, and its entity goes on"(harness) {
      const { store } = harness;
      await add(harness, inOrder("a", "b"));
      const task = await claimOne(store, "a");
      assert.equal(await store.work.fail(task, { reason: "no use", retryInMs: undefined }), true);
      assert.equal(await finish(harness, task), false, "the attempt has ended");
      assert.equal(await store.work.fail(task, { reason: "no use", retryInMs: 0 }), false);
      const record = await recordOf(store, "a");
      const { state, attempts, dueAtMs } = record;
      assert.deepEqual({ state, attempts, dueAtMs }, { state: "dead", attempts: 1, dueAtMs: undefined });
      assert.equal(record.failures.length, 1);
      assertEndedBy(record, "no use");
      assert.deepEqual(await drain(harness), ["b"]);
      assert.deepEqual(await claim(store), []);
    },
    async "of many failures the newest 20 are kept, oldest first"(harness) {
      const { store } = harness;
      await add(harness, [taskOf("a")]);
      const attempts = Array.from({ length: 22 }, (_none, index) => index + 1);
      await inTurn(attempts, async (attempt) => {
        const task = await claimOne(store, "a");
        assert.equal(task.attempt, attempt);
        await store.work.fail(task, { reason: `reason ${attempt}`, retryInMs: 0 });
      });
      const { failures } = await recordOf(store, "a");
      assert.deepEqual(
        failures.map(({ attempt, reason }) => `${attempt} ${reason}`),
        attempts.slice(2).map((attempt) => `${attempt} reason ${attempt}`),
      );
    },
    async "retry makes dead tasks open, due and the first of their entity, with attempts at 0"(harness) {
      const { store } = harness;
      await add(harness, inOrder("a", "b", "c", "d"));
      await inTurn(["a", "b"], (id) => kill(store, id));
      const ids = ["b", "a", "a", "c", "unknown"];
      assert.equal(await store.work.retry(queue, { ids }), 2, "only the dead ones count, once each");
      const { state, attempts, failures, endedAtMs } = await recordOf(store, "a");
      assert.deepEqual({ state, attempts, endedAtMs }, { state: "open", attempts: 0, endedAtMs: undefined });
      assert.deepEqual(
        failures.map(({ reason }) => reason),
        ["no use"],
        "its failures must be kept",
      );
      assert.deepEqual(await drain(harness), ["a", "b", "c", "d"]);
    },
    async "retry by time takes those that were given up then or later, also of an entity without another task"(
      harness,
    ) {
      const { store } = harness;
      await add(harness, inOrder("a", "b", "c"));
      await inTurn(["a", "b", "c"], async (id) => {
        await kill(store, id);
        await pass(harness, 5);
      });
      const { endedAtMs: deadSinceMs = 0 } = await recordOf(store, "b");
      assert.equal(await store.work.retry("other", { deadSinceMs: 0 }), 0, "a queue of its own");
      assert.equal(await store.work.retry(queue, { deadSinceMs }), 2);
      assert.deepEqual(await drain(harness), ["b", "c"]);
      assert.equal(await store.work.retry(queue, { deadSinceMs: 0 }), 1);
      assert.equal((await claimOne(store, "a")).attempt, 1);
    },
  }),
  ...workRules(["clock"], {
    async "after a failure the task waits for its next attempt, and its successors with it"(harness) {
      const { store } = harness;
      await add(harness, inOrder("a", "b"));
      const task = await claimOne(store, "a");
      assert.equal(await store.work.fail(task, { reason: "503", retryInMs: longLeaseMs }), true);
      assert.equal(await finish(harness, task), false, "the attempt has ended");
      await harness.advance?.(longLeaseMs - 1);
      assert.deepEqual(await claim(store), [], "neither it nor a successor may be due");
      const { state, attempts, failures, dueAtMs, addedAtMs } = await recordOf(store, "a");
      assert.deepEqual(
        { state, attempts, dueAtMs },
        { state: "open", attempts: 1, dueAtMs: addedAtMs + longLeaseMs },
      );
      assert.deepEqual(failures, [{ atMs: addedAtMs, attempt: 1, reason: "503" }]);
      await harness.advance?.(1);
      const again = await claimOne(store, "a");
      assert.equal(again.attempt, 2);
      assert.equal(await finish(harness, again), true);
      assert.deepEqual(await drain(harness), ["b"]);
    },
    async "what is given back does not count, and is due in its order after the delay"(harness) {
      const { store } = harness;
      await add(harness, [...inOrder("a", "b"), taskOf("c", { entity: "other" }), taskOf("d", { entity })]);
      const tasks = await claim(store);
      assert.deepEqual(new Set(idsOf(tasks)), new Set(["a", "c"]));
      await store.work.giveBack([...tasks, { queue, id: "unknown", token: "unknown" }], longLeaseMs);
      const { attempts, failures, state } = await recordOf(store, "a");
      assert.deepEqual({ attempts, failures, state }, { attempts: 0, failures: [], state: "open" });
      await harness.advance?.(longLeaseMs - 1);
      assert.deepEqual(await claim(store), []);
      await harness.advance?.(1);
      const again = await claim(store);
      assert.deepEqual(new Set(again.map(({ id, attempt }) => `${id} ${attempt}`)), new Set(["a 1", "c 1"]));
      await store.work.giveBack(again, 0);
      const order = await drain(harness);
      assert.deepEqual(
        order.filter((id) => id !== "c"),
        ["a", "b", "d"],
      );
    },
  }),
];
