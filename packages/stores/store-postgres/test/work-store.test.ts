import { fromPg } from "@countersign/databases";
import {
  createPostgresWork,
  migratePostgres,
  postgresMissingKeys,
  type PostgresStoresOptions,
} from "@countersign/store-postgres";
import { describe, expect, test } from "@jest/globals";
import { afterTest, pause, testClock } from "@countersign/test-support/runs/after-test.ts";
import { describeOnPostgres } from "@countersign/test-support/servers/engines.ts";
import { connectClient, connectPool, dayMs } from "./connections.ts";
import { claimOf, libraries } from "./payouts.ts";
import { newWork, queue, taskClaim, taskOf } from "./tasks.ts";

const decision = { by: "anna", note: "TICKET-1" };

const hostile: readonly [string, string][] = [
  ["quotes, backslashes and dollar signs", String.raw`o'clock "x" \' $1 $work$ ? {"a": "\u0000"}`],
  ["a NUL", "a\0b"],
  ["a lone surrogate", "a\ud800"],
  ["letters beyond ASCII", "z\u00fcrich \u{1f4b8}"],
  ["512 characters", "\u20ac".repeat(512)],
  ["512 surrogates", "\ud800".repeat(512)],
  ["a space at its end", "a "],
  ["the name of a prototype", "__proto__"],
];

describeOnPostgres("the table of work", () => {
  describe.each(libraries)("with %s", (_library, as) => {
    const setUp = () => newWork({ database: as(fromPg(connectPool({ max: 20 }))) });

    test.each(hostile)("gives back texts with %s as they were", async (_case, text) => {
      const { work, transactions, finishAlone } = await setUp();
      const task = { id: text, entity: text, body: text };
      const add = (again: typeof task) => transactions.run((tx) => work.add(tx, queue, [again]));
      expect(await add(task)).toEqual([{ status: "added" }]);
      expect(await add({ ...task, body: "other" })).toEqual([{ status: "known", body: text }]);
      const claim = taskClaim({ token: text });
      const owned = { queue, id: text, token: text };
      expect(await work.claim(claim)).toEqual([
        { ...owned, entity: text, body: text, attempt: 1, addedAtMs: expect.any(Number) },
      ]);
      expect(await work.extend([owned], 1_000)).toEqual([text]);
      expect(await work.fail(owned, { reason: text, retryInMs: 0 })).toBe(true);
      expect(await work.claim(claim)).toHaveLength(1);
      expect(await work.fail(owned, { reason: "the last", retryInMs: undefined })).toBe(true);
      expect(await work.retry(queue, { ids: [text] })).toBe(1);
      await work.claim(claim);
      expect(await finishAlone(owned)).toBe(true);
      expect(await work.read(queue, text)).toMatchObject({
        ...task,
        state: "done",
        failures: [{ reason: text }, { reason: "the last" }],
      });
      await work.pause(queue, { by: text.slice(0, 128), note: text });
      expect(await work.summaries()).toMatchObject([{ paused: { by: text.slice(0, 128), note: text } }]);
      const mark = { scope: text.slice(0, 128), subject: text, at: 5n };
      const advance = (at: bigint) => transactions.run((tx) => work.advance(tx, { ...mark, at }));
      expect([await advance(5n), await advance(4n), await advance(5n)]).toEqual([true, false, true]);
    });

    test("sets the savepoint of a transaction without keys", async () => {
      const { transactions, write, paid } = await setUp();
      const claim = claimOf([]);
      await transactions.run(async (tx) => {
        expect(await transactions.begin(tx, claim)).toEqual({ nonce: "fresh", keys: [] });
        await write(tx, "undone");
        await transactions.undo(tx, [], true);
        await write(tx, "kept");
        await transactions.keep(tx, [], false);
      });
      expect(await paid()).toEqual(["kept"]);
      const broken = transactions.run(async (tx) => {
        await transactions.begin(tx, claim);
        await tx.query("COMMIT");
        await transactions.keep(tx, [], false);
      });
      await expect(broken).rejects.toMatchObject({ code: "transaction-broken" });
    });
  });

  test("keeps texts apart that look alike", async () => {
    const { work, addAll } = await newWork();
    const ids = ["a", "A", "a ", "\u00e4", "a\u0308", "a\0", String.raw`a\u0000`];
    const tasks = ids.map((id) => ({ id, entity: id, body: id }));
    expect(await addAll(...tasks)).toEqual(ids.map(() => "added"));
    const claimed = await work.claim(taskClaim());
    expect(claimed.map(({ id, entity, body }) => ({ id, entity, body }))).toEqual(
      expect.arrayContaining(tasks),
    );
    const [own, other] = [{ id: "x", body: "" }, taskOf("y@x")];
    await addAll(own, other);
    expect(await work.claim(taskClaim())).toHaveLength(2);
  });

  test("keeps order in an entity whose lane came again, though the clock was set back", async () => {
    const clock = testClock();
    const { work, addAll, claimAll, finishAlone } = await newWork({ now: clock.now });
    await addAll("1@a", "2@a");
    const [first] = await work.claim(taskClaim());
    clock.advance(-60_000);
    await addAll("3@a");
    await finishAlone(first!);
    clock.advance(60_000);
    const listed = await work.list({ queue, state: "open", limit: 10 });
    expect(listed.tasks.map(({ id }) => id)).toEqual(["2", "3"]);
    expect(await claimAll()).toEqual(["2"]);
  });

  test("owns a task by itself, not by its lane: an older one that is retried waits", async () => {
    const { work, addAll, claimAll, finishAlone } = await newWork();
    await addAll("1@a", "2@a");
    const [first] = await work.claim(taskClaim());
    await work.fail(first!, { reason: "why", retryInMs: undefined });
    const [second] = await work.claim(taskClaim({ leaseMs: 1 }));
    expect(await work.retry(queue, { deadSinceMs: 0 })).toBe(1);
    const older = { ...second!, id: "1" };
    expect(await finishAlone(older)).toBe(false);
    expect(await work.extend([older], 1_000)).toEqual([]);
    await pause(5);
    expect(await claimAll()).toEqual(["1"]);
    expect((await work.read(queue, "1"))?.failures.map(({ reason }) => reason)).toEqual(["why"]);
    expect((await work.read(queue, "2"))?.failures).toMatchObject([{ attempt: 1, reason: "lease-expired" }]);
  });

  test("finds due tasks behind lanes that have none", async () => {
    const { work, addAll, claimAll, pool, schema } = await newWork();
    await pool.query(
      `INSERT INTO ${schema}.countersign_lanes (queue, lane, due_at, last_number)
       SELECT $1, 't' || n, 'epoch', 0 FROM generate_series(1, 7) AS n`,
      [queue],
    );
    await addAll("a", { id: "later", body: "", delayMs: dayMs });
    await pool.query(`UPDATE ${schema}.countersign_lanes SET due_at = 'epoch' WHERE lane = 'tlater'`);
    expect(await claimAll({ limit: 2 })).toEqual(["a"]);
    expect(await work.summaries()).toMatchObject([{ open: 2, running: 1 }]);
    expect((await pool.query(`SELECT FROM ${schema}.countersign_lanes`)).rowCount).toBe(2);
  });

  test("pages through all states by when they were added", async () => {
    const { work, addAll, finishAlone } = await newWork();
    const ids = ["d", "c", "b", "a"];
    await addAll(...ids);
    const [done, dead] = await work.claim(taskClaim({ limit: 2 }));
    await finishAlone(done!);
    await work.fail(dead!, { reason: "why", retryInMs: undefined });
    const found: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await work.list({ queue, limit: 1, cursor });
      found.push(...page.tasks.map(({ id }) => id));
      cursor = page.cursor;
    } while (cursor !== undefined);
    expect(found).toEqual(ids);
    for (const damaged of ["", "x", Buffer.from("no number").toString("base64url")]) {
      await expect(work.list({ queue, limit: 1, cursor: damaged })).rejects.toThrow(TypeError);
    }
  });

  test("forgets a done task after its retention, and no other one", async () => {
    const clock = testClock();
    const { work, addAll, finishAlone } = await newWork({ now: clock.now, taskRetentionMs: 3 * dayMs });
    await addAll("done");
    await finishAlone((await work.claim(taskClaim()))[0]!);
    await addAll("dead");
    await work.fail((await work.claim(taskClaim()))[0]!, { reason: "why", retryInMs: undefined });
    await addAll("open");
    clock.advance(3 * dayMs - 1);
    expect(await work.prune()).toBe(0);
    expect(await addAll("done")).toEqual(["known"]);
    clock.advance(1);
    expect(await work.prune()).toBe(1);
    expect(await addAll("done")).toEqual(["added"]);
    expect(await work.summaries()).toMatchObject([{ open: 2, dead: 1, done: 0 }]);
  });

  test.each([
    ["a retention of less than 3 days", { taskRetentionMs: 3 * dayMs - 1 }, /taskRetentionMs/],
    ["no connection", { pool: undefined as never }, /pool/],
  ])("refuses %s", (_case, options: Partial<PostgresStoresOptions>, message) => {
    expect(() => createPostgresWork({ pool: connectPool(), ...options })).toThrow(message);
  });
});

describeOnPostgres("createPostgresWork()", () => {
  test("lets operators look and decide by a client alone", async () => {
    const { work: worker, pool, schema, addAll, claimAll } = await newWork();
    const work = createPostgresWork({ pool: await connectClient(pool), schema, pruneIntervalMs: 0 });
    afterTest(() => work.close());
    await addAll("1@a", "2@a", "3");
    for (const task of await worker.claim(taskClaim())) {
      await worker.fail(task, { reason: "why", retryInMs: undefined });
    }
    expect(await work.list({ queue, state: "dead", limit: 10 })).toMatchObject({
      tasks: [
        { id: "1", entity: "a" },
        { id: "3", entity: undefined },
      ],
      cursor: undefined,
    });
    await work.pause(queue, decision);
    expect(await claimAll()).toEqual([]);
    expect(await work.discard(queue, ["3", "2"], decision)).toBe(1);
    expect(await work.retry(queue, { ids: ["1", "3", "none"] })).toBe(1);
    expect([await work.resume(queue), await work.resume(queue)]).toEqual([true, false]);
    expect(await work.read(queue, "3")).toMatchObject({
      state: "done",
      failures: [{ reason: "why" }, { reason: "discarded by anna: TICKET-1" }],
    });
    expect(await claimAll()).toEqual(["1"]);
    expect(await work.prune()).toBe(0);
  });
});

describeOnPostgres("tables of work", () => {
  test.each(["lanes", "tasks", "queues", "newest"])(
    "%s that lost its key, or that a crash would empty, is refused",
    async (table) => {
      const { pool, schema, another } = await newWork();
      const name = `${schema}.countersign_${table}`;
      await pool.query(`ALTER TABLE ${name} SET UNLOGGED`);
      await expect(another().ready()).rejects.toThrow(/unlogged/);
      await pool.query(`ALTER TABLE ${name} SET LOGGED`);
      await pool.query(`ALTER TABLE ${name} DROP CONSTRAINT countersign_${table}_pkey`);
      await expect(another().ready()).rejects.toThrow(/lost their primary key/);
      await pool.query((await postgresMissingKeys(pool, { schema })) ?? "");
      await another().ready();
      await migratePostgres(pool, { schema });
    },
  );
});
