import { type PostgresStoresOptions, migrate } from "@countersign/store-sql";
import { createPostgresWork, postgresMissingKeys } from "@countersign/store-sql/internal";
import { expect, test } from "@jest/globals";
import { afterTest, testClock } from "@countersign/test-support/runs/after-test.ts";
import { describeOnPostgres } from "@countersign/test-support/servers/engines.ts";
import { connectClient, connectPool, dayMs } from "./connections.ts";
import { newWork, queue, taskClaim } from "./tasks.ts";

const decision = { by: "anna", note: "TICKET-1" };

describeOnPostgres("the table of work", () => {
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

  test("finds due tasks behind lanes that have none", async () => {
    const { work, addAll, claimAll, pool, schema } = await newWork();
    await pool.query(
      `INSERT INTO ${schema}.countersign_lanes (digest, queue, lane, due_us, last_number, version)
       SELECT sha256(n::text::bytea), $1, 't' || n, 0, 0, 1 FROM generate_series(1, 50) AS n`,
      [queue],
    );
    await addAll("a", { id: "later", body: "", delayMs: dayMs });
    await pool.query(`UPDATE ${schema}.countersign_lanes SET due_us = 0 WHERE lane = 'tlater'`);
    expect(await claimAll({ limit: 2 })).toEqual(["a"]);
    expect(await work.summaries()).toMatchObject([{ open: 2, running: 1 }]);
    expect((await pool.query(`SELECT FROM ${schema}.countersign_lanes`)).rowCount).toBe(2);
  });

  test("remembers a done task as long as the process that ended it says: a command that prunes knows no retention", async () => {
    const clock = testClock();
    const { work, another, addAll, finishAlone } = await newWork({
      now: clock.now,
      taskRetentionMs: 60 * dayMs,
    });
    await addAll("a");
    await finishAlone((await work.claim(taskClaim()))[0]!);
    const command = another({ now: clock.now }).work;
    clock.advance(60 * dayMs - 1);
    expect(await command.prune()).toBe(0);
    clock.advance(1);
    expect(await command.prune()).toBe(1);
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
      await migrate(pool, { schema });
    },
  );
});
