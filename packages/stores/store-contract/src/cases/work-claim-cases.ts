import assert from "node:assert/strict";
import type { ClaimedTask } from "@countersign/work";
import { longLeaseMs, shortLeaseMs } from "../claims.ts";
import {
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
  taskOf,
  workRules,
} from "../tasks.ts";
import { inTurn, pass } from "../waiting.ts";

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
