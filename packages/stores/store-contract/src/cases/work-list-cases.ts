import assert from "node:assert/strict";
import { answerOf } from "@countersign/idempotency/door";
import type { TaskQuery } from "@countersign/work";
import {
  type Work,
  type WorkCase,
  add,
  idsOf,
  inOrder,
  kill,
  queue,
  rolledBack,
  taskOf,
  transact,
} from "../tasks.ts";
import { inTurn, outcomeOf, pass } from "../waiting.ts";

/** Pages of tasks, and the newest times. */
export const workListCases: readonly WorkCase[] = [
  {
    name: "a list pages through the tasks of a queue in the order of adding, of one state or of all",
    async check(harness) {
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
  },
  {
    name: "a page begins after the one before, also when tasks have ended meanwhile",
    async check(harness) {
      const { work } = harness.store;
      await add(harness, inOrder("a", "b", "c", "d"));
      const { cursor } = await work.list({ queue, limit: 2, state: "open" });
      await inTurn(["a", "b", "c"], (id) => kill(harness.store, id));
      const page = await work.list({ queue, limit: 2, state: "open", cursor });
      assert.deepEqual({ ids: idsOf(page.tasks), cursor: page.cursor }, { ids: ["d"], cursor: undefined });
    },
  },
  {
    name: "a damaged cursor is a TypeError",
    async check(harness) {
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
  },
  {
    name: "advance writes a time unless a newer one is there, each subject of a scope by itself",
    async check(harness) {
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
  },
];

async function pagesOf(
  harness: Work,
  query: Partial<TaskQuery> & Pick<TaskQuery, "limit">,
): Promise<readonly (readonly string[])[]> {
  const { tasks, cursor } = await harness.store.work.list({ queue, ...query });
  const more = cursor === undefined ? [] : await pagesOf(harness, { ...query, cursor });
  return [idsOf(tasks), ...more];
}
