import { fromPg } from "@countersign/store-sql/pg";
import { createStores, migrate } from "@countersign/store-sql";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { isolatedName, postgresUrl } from "@countersign/test-support/servers/engines.ts";
import { Pool } from "pg";
import { queue, taskClaim, taskOf } from "./tasks.ts";

const onPostgres = postgresUrl === undefined ? describe.skip : describe;

// Plans come as notices.
const explained = [
  "session_preload_libraries=auto_explain",
  "auto_explain.log_min_duration=0",
  "auto_explain.log_analyze=on",
  "auto_explain.log_buffers=on",
  "client_min_messages=log",
];

/** Stores whose statements are explained, in a schema of their own, and a connection that is not. */
function openExplained() {
  const schema = isolatedName("pg");
  const quiet = new Pool({ connectionString: postgresUrl, max: 1 });
  const pool = new Pool({
    connectionString: postgresUrl,
    max: 1,
    options: explained.map((s) => `-c ${s}`).join(" "),
  });
  const plans: string[] = [];
  pool.on("connect", (client) => client.on("notice", ({ message = "" }) => plans.push(message)));
  const stores = createStores({ database: fromPg(pool), schema, pruneIntervalMs: 0 });
  const end = async (): Promise<void> => {
    stores.close();
    await quiet.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`);
    await Promise.all([pool.end(), quiet.end()]);
  };
  return { schema, quiet, plans, work: stores.work, transactions: stores.transactions, end };
}

onPostgres("the plans of the table of work, behind 5,000 blocked and 20,000 done tasks", () => {
  const { schema, quiet, plans, work, transactions, end } = openExplained();
  const running = (number: number) => ({ queue, id: `running-${number}`, token: "a" });

  beforeAll(async () => {
    await migrate(quiet, { schema });
    const [lanes, tasks] = [`${schema}.countersign_lanes`, `${schema}.countersign_tasks`];
    const stores = createStores({ database: fromPg(quiet), schema, pruneIntervalMs: 0 });
    const add = async (name: string, count: number, entity: (number: number) => string | undefined) => {
      const added = Array.from({ length: count }, (_, index) => ({
        id: `${name}-${index + 1}`,
        entity: entity(index + 1),
        body: "x".repeat(200),
      }));
      await stores.transactions.run((tx) => stores.work.add(tx, queue, added));
    };
    await add("done", 20_000, () => undefined);
    await add("dead", 100, (number) => `dead-${number % 10}`);
    await quiet.query(
      `UPDATE ${tasks} SET state = split_part(id, '-', 1), ended_us = added_us - number % 100 * 60000000`,
    );
    await quiet.query(`DELETE FROM ${lanes}`);
    await add("blocked", 5_000, () => "blocked");
    await add("later", 5_000, (number) => `later-${number}`);
    await add("running", 100, () => undefined);
    await quiet.query(`UPDATE ${tasks} SET token = 'a' WHERE id LIKE 'running-%'`);
    await quiet.query(
      `UPDATE ${lanes} AS lane SET due_us = lane.due_us + 3600000000, token = task.token,
         task = CASE WHEN task.token IS NOT NULL THEN task.digest END
       FROM ${tasks} AS task WHERE task.lane = lane.digest`,
    );
    stores.close();
    await quiet.query(`VACUUM ANALYZE ${lanes}, ${tasks}`);
    await transactions.run((tx) => work.add(tx, queue, [taskOf("due-1"), taskOf("due-2@e")]));
  });

  afterAll(end);

  test.each<[string, readonly string[], () => Promise<unknown>]>([
    [
      "adding",
      ["lanes_pkey"],
      () => transactions.run((tx) => work.add(tx, queue, [taskOf("new@blocked"), taskOf("done-7")])),
    ],
    [
      "a claim",
      ["lanes_due", "tasks_heads", "lanes_pkey", "tasks_pkey"],
      () => work.claim(taskClaim({ limit: 1 })),
    ],
    ["an extension", ["tasks_pkey"], () => work.extend([running(1)], 60_000)],
    ["a failure", ["lanes_pkey", "tasks_pkey"], () => work.fail(running(2), { reason: "why", retryInMs: 0 })],
    ["a finish", ["tasks_pkey"], () => transactions.run((tx) => work.finish(tx, running(3)))],
    [
      "a retry",
      ["tasks_states", "lanes_pkey", "tasks_pkey"],
      () => work.retry(queue, { deadSinceMs: Date.now() - 600_000 }),
    ],
    ["a page of one state", ["tasks_states"], () => work.list({ queue, state: "done", limit: 10 })],
    ["a page of all", ["tasks_states"], () => work.list({ queue, limit: 10 })],
    ["a read", ["tasks_pkey"], () => work.read(queue, "done-1")],
    ["the pruning", ["tasks_pruning"], () => work.prune()],
  ])("%s walks over no table, but uses %s", async (_name, indexes, step) => {
    plans.length = 0;
    await step();
    const all = plans.join("\n");
    for (const index of indexes) expect(all).toContain(`countersign_${index}`);
    expect(all).not.toMatch(/Seq Scan on countersign_(lanes|tasks)/);
  });
});

onPostgres("the plans of the table of work", () => {
  const { schema, quiet, plans, work, transactions, end } = openExplained();
  afterAll(end);

  test("stay in a session when a small table grows by thousands of tasks before it is analysed", async () => {
    const [lanes, tasks] = [`${schema}.countersign_lanes`, `${schema}.countersign_tasks`];
    await migrate(quiet, { schema });
    for (const table of [lanes, tasks])
      await quiet.query(`ALTER TABLE ${table} SET (autovacuum_enabled = off)`);
    await quiet.query(`VACUUM ANALYZE ${lanes}, ${tasks}`);
    const round = async (name: number): Promise<void> => {
      const one = [taskOf(`round-${name}@e`)];
      await transactions.run((tx) => work.add(tx, queue, one));
      await transactions.run((tx) => work.add(tx, queue, one));
      const claimed = await work.claim(taskClaim());
      expect(claimed).toHaveLength(1);
      await work.extend(claimed, 60_000);
      for (const task of claimed) await transactions.run((tx) => work.finish(tx, task));
    };
    for (let name = 0; name < 10; name++) await round(name);
    await quiet.query(
      `INSERT INTO ${tasks} (digest, queue, id, lane, number, state, body, attempts, failures, added_us, due_us)
       SELECT sha256(n::text::bytea), $1, 'a' || n, sha256(('a' || n)::bytea), n, 'open', '', 0, '[]', 0, 9e15
       FROM generate_series(1, 20000) AS n`,
      [queue],
    );
    await quiet.query(
      `INSERT INTO ${lanes} (digest, queue, lane, due_us, last_number, version)
       SELECT lane, queue, 'ta', due_us, number, 1 FROM ${tasks} WHERE due_us > 8e15`,
    );
    plans.length = 0;
    await round(10);
    expect(plans.length).toBeGreaterThan(5);
    for (const plan of plans) {
      const read = [...plan.matchAll(/shared hit=(\d+)/g)].map(([, pages]) => Number(pages));
      expect(Math.max(0, ...read)).toBeLessThan(60);
    }
  });
});
