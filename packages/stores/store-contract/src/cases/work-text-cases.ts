import assert from "node:assert/strict";
import { type Steps, answerOf } from "@countersign/idempotency/internal";
import type { ClaimedTask, WorkStore } from "@countersign/idempotency/work";
import { longLeaseMs } from "../claims.ts";
import { hostileTexts, mistakable, shown } from "../hostile-texts.ts";
import { add, claim, claimOne, inOrder, queue, recordOf, taskOf, transact, workRules } from "../tasks.ts";
import { inTurn, outcomeOf } from "../waiting.ts";

const longestBody = 1_048_576;
const mine = { queue, id: "a", token: "t" } as const;
const claimed = { queue, limit: 1, token: "t", leaseMs: longLeaseMs } as const;
const decision = { by: "anna", note: "why" } as const;
const mark = { scope: "s", subject: "a", at: 1n } as const;
const long = (characters: number) => "x".repeat(characters + 1);

const unfit: Readonly<Record<string, (work: WorkStore<unknown>, tx: unknown) => unknown>> = {
  "a queue with a capital": (work, tx) => work.add(tx, "Q", [taskOf("new")]),
  "a queue of 65 characters": (work, tx) => work.add(tx, "q".repeat(65), [taskOf("new")]),
  "an empty id": (work, tx) => work.add(tx, queue, [taskOf("new"), taskOf("")]),
  "an id of 513 characters": (work, tx) => work.add(tx, queue, [taskOf("new"), taskOf(long(512))]),
  "an empty entity": (work, tx) => work.add(tx, queue, [taskOf("new", { entity: "" })]),
  "a body beyond 1 MiB": (work, tx) => work.add(tx, queue, [taskOf("new", { body: long(longestBody) })]),
  "a body beyond 1 MiB as UTF-8": (work, tx) =>
    work.add(tx, queue, [taskOf("new", { body: "\u00e9".repeat(longestBody / 2 + 1) })]),
  "a delay below 0": (work, tx) => work.add(tx, queue, [taskOf("new", { delayMs: -1 })]),
  "half a millisecond": (work, tx) => work.add(tx, queue, [taskOf("new", { delayMs: 0.5 })]),
  "an id twice": (work, tx) => work.add(tx, queue, [taskOf("new"), taskOf("new")]),
  "finish of an id of 513 characters": (work, tx) => work.finish(tx, { ...mine, id: long(512) }),
  "a time beyond the year 9999": (work, tx) => work.advance(tx, { ...mark, at: 10n ** 21n }),
  "a scope of 129 characters": (work, tx) => work.advance(tx, { ...mark, scope: long(128) }),
  "a limit of 0": (work) => work.claim({ ...claimed, limit: 0 }),
  "a limit of 101": (work) => work.claim({ ...claimed, limit: 101 }),
  "a lease of 0": (work) => work.claim({ ...claimed, leaseMs: 0 }),
  "an extension of 0": (work) => work.extend([mine], 0),
  "a reason of 2,001 characters": (work) => work.fail(mine, { reason: long(2_000), retryInMs: 0 }),
  "a retry before now": (work) => work.fail(mine, { reason: "why", retryInMs: -1 }),
  "a delay of what is given back below 0": (work) => work.giveBack([mine], -1),
  "a list of 1,001": (work) => work.list({ queue, limit: 1_001 }),
  "a pause by nobody": (work) => work.pause(queue, { ...decision, by: "" }),
  "a note of 513 characters": (work) => work.discard(queue, ["a"], { ...decision, note: long(512) }),
  "a time that is no integer": (work) => work.retry(queue, { deadSinceMs: 0.5 }),
};

/** What texts may be, and what is refused. */
export const workTextCases = workRules([], {
  async "hostile ids, entities and bodies come back as they were and stay apart"(harness) {
    const { store } = harness;
    const texts = [...new Set([...hostileTexts, ...mistakable.flat()])];
    const tasks = texts.flatMap((text, index) => [
      { id: text, entity: undefined, body: text },
      { id: `of an entity ${index}`, entity: text, body: `${text} of an entity` },
    ]);
    const added = await add(harness, tasks);
    assert.ok(
      added.every(({ status }) => status === "added"),
      "all of them must be added",
    );
    const known = await add(harness, tasks);
    const bodies = known.map((answer) => (answer.status === "known" ? answer.body : undefined));
    assert.deepEqual(
      bodies,
      tasks.map(({ body }) => body),
    );
    const found: ClaimedTask[] = [];
    for (;;) {
      // oxlint-disable-next-line no-await-in-loop -- until nothing is due
      const more = await claim(store);
      if (more.length === 0) break;
      found.push(...more);
    }
    const byId = new Map(found.map(({ id, entity, body }) => [id, { id, entity, body }]));
    for (const task of tasks) assert.deepEqual(byId.get(task.id), task, `${shown(task)} must be claimed`);
    assert.equal(found.length, tasks.length, "each must have a lane of its own");
    const ended = await transact(store, function* ending(tx): Steps<unknown> {
      const answers = [];
      for (const task of found) answers.push(yield* answerOf(store.work.finish(tx, task)));
      return answers;
    });
    assert.deepEqual(
      ended,
      tasks.map(() => true),
    );
    await inTurn(texts, async (text) =>
      assert.equal((await recordOf(store, text)).state, "done", shown(text)),
    );
  },
  async "hostile tokens, reasons, decisions, scopes and subjects stay as they were"(harness) {
    const { store } = harness;
    const { work } = store;
    await add(harness, inOrder("a"));
    const reasons = mistakable.flat().slice(0, 10);
    await inTurn(reasons, async (text) => {
      const task = await claimOne(store, "a", { token: `a ${text}` });
      assert.equal(task.token, `a ${text}`);
      assert.equal(await work.fail({ ...task, token: "a" }, { reason: text, retryInMs: 0 }), false);
      assert.equal(await work.fail(task, { reason: text, retryInMs: 0 }), true, shown(text));
    });
    const { failures } = await recordOf(store, "a");
    assert.deepEqual(
      failures.map(({ reason }) => reason),
      reasons,
    );
    await inTurn(mistakable.flat().slice(0, 18), async (text) => {
      await work.pause(queue, { by: text, note: text });
      const [summary] = await work.summaries();
      assert.deepEqual([summary?.paused?.by, summary?.paused?.note], [text, text], shown(text));
    });
    const texts = [...new Set(mistakable.flat())];
    const scopes = texts.filter((text) => text.length <= 128);
    const marks = [
      ...texts.map((subject) => ({ scope: "s", subject })),
      ...scopes.map((scope) => ({ scope, subject: "s" })),
    ];
    const written = await transact(store, function* advancing(tx): Steps<unknown> {
      const answers = [];
      // Each is older than all before: one that is taken for another is refused.
      for (const [index, { scope, subject }] of marks.entries()) {
        answers.push(yield* answerOf(work.advance(tx, { scope, subject, at: -BigInt(index) })));
      }
      return answers;
    });
    assert.deepEqual(
      written,
      marks.map(() => true),
      "each must be a subject of its own",
    );
  },
  async "a body of 1 MiB and an empty one are kept as they are"(harness) {
    const { store } = harness;
    const bodies = ["x".repeat(longestBody), '"\\\u00e9\0'.repeat(200_000), ""];
    await add(
      harness,
      bodies.map((body, index) => taskOf(String(index), { body })),
    );
    const tasks = await claim(store);
    await inTurn(tasks, async ({ id, body }) => {
      assert.ok(body === bodies[Number(id)], `the body of ${id} must be the same`);
      assert.ok((await recordOf(store, id)).body === body, "for readers too");
    });
    assert.equal(tasks.length, bodies.length);
  },
  async "unfit arguments are a TypeError, and nothing is written"(harness) {
    const { store } = harness;
    await add(harness, inOrder("a"));
    const before = await store.work.list({ queue, limit: 10 });
    await inTurn(Object.entries(unfit), async ([what, step]) => {
      const inside = step.length > 1;
      const { error } = await outcomeOf(() =>
        inside ? transact(store, (tx) => answerOf(step(store.work, tx))) : step(store.work, undefined),
      );
      assert.ok(error?.thrown instanceof TypeError, `${what} must be refused; ${shown(error?.thrown)}`);
    });
    assert.deepEqual(await store.work.list({ queue, limit: 10 }), before);
    // By the engine's own clock the age grows from one look to the next.
    const aged = (await store.work.summaries()).map(({ oldestOpenMs: _age, ...summary }) => summary);
    assert.deepEqual(aged, [{ queue, paused: undefined, open: 1, running: 0, dead: 0, done: 0 }]);
  },
});
