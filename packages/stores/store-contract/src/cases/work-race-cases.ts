import assert from "node:assert/strict";
import { type Steps, answerOf } from "@countersign/idempotency/internal";
import type { ClaimedTask, WorkStores } from "@countersign/idempotency/work";
import { longLeaseMs, shortLeaseMs } from "../claims.ts";
import { claimOf, sorted, writtenBy } from "../payments.ts";
import {
  type Work,
  type WorkCase,
  add,
  claim,
  claimOne,
  drain,
  finish,
  inOrder,
  queue,
  recordOf,
  taskOf,
  transact,
  workRules,
} from "../tasks.ts";
import { handlesOf, inTurn, openUntilEnded, outcomeOf, pass, pause, soon } from "../waiting.ts";

const entities = ["e1", "e2", "e3", "e4", "e5"] as const;
const tasksOfEach = 6;

type Ending = "commit" | "roll back";
const endings: readonly Ending[] = ["commit", "roll back"];

/** Workers, adders and open transactions beside each other. */
export const workRaceCases: readonly WorkCase[] = [
  ...workRules([], {
    async "of adders of one id at once a single one adds it"(harness) {
      const adders = Array.from({ length: 8 }, (_none, index) => String(index));
      const answers = await Promise.all(
        adders.map((body) => add(harness, [taskOf("a", { body }), taskOf("b", { entity: "e", body })])),
      );
      const { body } = await recordOf(harness.store, "a");
      const added = answers.filter((answer) => answer.every(({ status }) => status === "added"));
      assert.equal(added.length, 1, "one of them must have added both");
      const known = { status: "known", body };
      const others = answers.filter((answer) => !added.includes(answer));
      assert.deepEqual(
        others,
        adders.slice(1).map(() => [known, known]),
      );
    },
    async "workers side by side write each task's effect once, in its entity's order"(harness) {
      const stores =
        harness.another === undefined ? [1, 2, 3, 4].map(() => harness.store) : await handlesOf(harness);
      const effects: string[] = [];
      const adding = entities.map((entity) =>
        inTurn(namesOf(entity), (id) => add(harness, [taskOf(id, { entity })])),
      );
      const working = stores.map((store) => workUntil(harness, store, effects));
      await Promise.all([...adding, ...working]);
      assert.deepEqual(await writtenBy(harness), sorted(entities.flatMap(namesOf)));
      for (const entity of entities) {
        assert.deepEqual(
          effects.filter((id) => id.startsWith(entity)),
          namesOf(entity),
        );
      }
      assert.deepEqual(await claim(harness.store), []);
    },
  }),
  ...workRules(["waiting"], {
    async "a lease is renewed while an open transaction adds to its entity"(harness) {
      const { store } = harness;
      await add(harness, inOrder("a"));
      const task = await claimOne(store, "a", { leaseMs: shortLeaseMs });
      const open = await openTransaction(harness, (tx) => store.work.add(tx, queue, inOrder("b")));
      const renewed = await outcomeOf(() => store.work.extend([task], longLeaseMs));
      // The transaction is open for longer than the first lease.
      await pass(harness, shortLeaseMs);
      await open.end("commit");
      assert.deepEqual(renewed.value, ["a"], "it must be renewed without a wait");
      assert.deepEqual(await claim(store), [], "the task must be its owner's still");
      assert.equal(await finish(harness, task), true);
      assert.deepEqual(await drain(harness), ["b"]);
    },
    async "a claim waits for no open transaction, and takes nothing of it"(harness) {
      const { store } = harness;
      await add(harness, inOrder("a", "b"));
      const task = await claimOne(store, "a");
      const open = await openTransaction(harness, async (tx) => {
        await store.work.finish(tx, task);
        await store.work.add(tx, queue, [taskOf("new")]);
      });
      // The transaction stays open until it has answered: on a busy machine that takes a while.
      const outcome = await soon(
        outcomeOf(() => claim(store)),
        5_000,
      );
      await open.end("commit");
      assert.deepEqual(outcome?.value, [], "nothing must be claimed that did not commit");
      assert.deepEqual(new Set(await drain(harness)), new Set(["b", "new"]));
    },
  }),
  ...endings.flatMap((ending) =>
    workRules(["waiting"], {
      async [`an id of an open transaction is ${ending === "commit" ? "known once it commits" : "added once it rolls back"}`](
        harness,
      ) {
        const open = await openTransaction(harness, (tx) => harness.store.work.add(tx, queue, inOrder("a")));
        const late = add(harness, [{ ...taskOf("a", { body: "late", entity: "other" }) }]);
        const early = await soon(outcomeOf(() => late));
        await open.end(ending);
        assert.equal(early, undefined, "the open transaction must be waited for");
        const known = { status: "known", body: "body of a" };
        assert.deepEqual(await late, [ending === "commit" ? known : { status: "added" }]);
        assert.deepEqual(await drain(harness), ["a"]);
      },
      async [`a task that is added while its entity's last one ends is not lost: the end does ${ending}`](
        harness,
      ) {
        await add(harness, inOrder("a"));
        const task = await claimOne(harness.store, "a");
        const open = await openTransaction(harness, (tx) => harness.store.work.finish(tx, task));
        const adding = outcomeOf(() => add(harness, inOrder("b")));
        await soon(adding);
        await open.end(ending);
        assert.deepEqual((await adding).value, [{ status: "added" }]);
        if (ending === "roll back") {
          assert.deepEqual(await claim(harness.store), [], "the task must be its owner's as before");
          assert.equal(await finish(harness, task), true);
        }
        assert.deepEqual(await drain(harness), ["b"]);
      },
      async [`a task that an open transaction adds while its entity's last one ends is not lost: the adding does ${ending}`](
        harness,
      ) {
        await add(harness, inOrder("a"));
        const task = await claimOne(harness.store, "a");
        const open = await openTransaction(harness, (tx) => harness.store.work.add(tx, queue, inOrder("b")));
        const ended = outcomeOf(() => finish(harness, task));
        await soon(ended);
        await open.end(ending);
        assert.equal((await ended).value, true);
        assert.deepEqual(await drain(harness), ending === "commit" ? ["b"] : []);
        await add(harness, inOrder("c"));
        assert.deepEqual(await drain(harness), ["c"], "the entity must go on");
      },
    }),
  ),
];

function namesOf(entity: string): readonly string[] {
  return Array.from({ length: tasksOfEach }, (_none, index) => `${entity} task ${index}`);
}

/** A worker, until the effects of all are there. Some first attempts fail; some tasks are given back. */
async function workUntil(harness: Work, store: WorkStores<unknown>, effects: string[]): Promise<void> {
  for (let turn = 0; effects.length < entities.length * tasksOfEach; turn += 1) {
    // oxlint-disable-next-line no-await-in-loop -- claim after claim
    const tasks = await claim(store, { limit: 2 });
    // oxlint-disable-next-line no-await-in-loop -- others have their turn
    if (tasks.length === 0) await pause(1);
    // oxlint-disable-next-line no-await-in-loop -- one after the other
    await inTurn(tasks, async (task) => {
      if (task.attempt === 1 && task.id.endsWith("2")) {
        await store.work.fail(task, { reason: "503", retryInMs: 0 });
      } else if (turn % 5 === 4) await store.work.giveBack([task], 0);
      else await takeEffect(harness, store, task, effects);
    });
  }
}

async function takeEffect(
  harness: Work,
  store: WorkStores<unknown>,
  task: ClaimedTask,
  effects: string[],
): Promise<void> {
  const { transactions, work } = store;
  await transact(store, function* handling(tx): Steps<void> {
    yield* answerOf(transactions.begin(tx, claimOf([], { nonce: undefined })));
    yield* answerOf(harness.write(tx, task.id));
    if (!(yield* answerOf(work.finish(tx, task)))) throw new Error(`${task.id} must be its owner's`);
    yield* answerOf(transactions.keep(tx, [], false));
  });
  effects.push(task.id);
}

/** A transaction that has taken the step, and stays open until it is ended. */
async function openTransaction(
  { store }: Work,
  step: (tx: unknown) => unknown,
): Promise<{ end(how: Ending): Promise<void> }> {
  return openUntilEnded<Ending>((opened, ending) =>
    transact(store, function* waiting(tx): Steps<void> {
      yield* answerOf(step(tx));
      opened();
      if ((yield* answerOf(ending)) === "roll back") throw new Error("rolled back");
    }),
  );
}
