import { fromPg } from "@countersign/store-sql/pg";
import { createStores, migrate } from "@countersign/store-sql";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { isolatedName, postgresUrl } from "@countersign/test-support/servers/engines.ts";
import { Pool } from "pg";
import { queue, taskClaim, taskOf } from "./tasks.ts";

const onPostgres = postgresUrl === undefined ? describe.skip : describe;

// Statements inside of functions, too, come as notices.
const explained = [
  "session_preload_libraries=auto_explain",
  "auto_explain.log_min_duration=0",
  "auto_explain.log_nested_statements=on",
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
    const addTasks = (state: string, name: string, lane: string, count: number) =>
      quiet.query(
        `INSERT INTO ${schema}.countersign_tasks (queue, id, lane, number, state, body, added_at, due_at, ended_at, token)
         SELECT $1, $3 || n, ${lane}, n, $2, repeat('x', 200), now(), now(), CASE $2 WHEN 'open' THEN NULL ELSE now() - n * interval '1 minute' END,
           CASE $3 WHEN 'running-' THEN 'a' END
         FROM generate_series(1, ${count}) AS n`,
        [queue, state, name],
      );
    await addTasks("done", "done-", "'tdone-' || n", 20_000);
    await addTasks("dead", "dead-", "'edead-' || n % 10", 100);
    await addTasks("open", "blocked-", "'eblocked'", 5_000);
    await addTasks("open", "later-", "'elater-' || n", 5_000);
    await addTasks("open", "running-", "'trunning-' || n", 100);
    await quiet.query(
      `INSERT INTO ${schema}.countersign_lanes (queue, lane, due_at, last_number, token, running)
       SELECT queue, lane, now() + interval '1 hour', max(number), max(CASE WHEN lane LIKE 't%' THEN 'a' END), max(CASE WHEN lane LIKE 't%' THEN id END)
       FROM ${schema}.countersign_tasks WHERE state = 'open' GROUP BY queue, lane`,
    );
    await quiet.query(`VACUUM ANALYZE ${schema}.countersign_lanes, ${schema}.countersign_tasks`);
    await transactions.run((tx) => work.add(tx, queue, [taskOf("due-1"), taskOf("due-2@e")]));
  });

  afterAll(end);

  test.each<[string, readonly string[], () => Promise<unknown>]>([
    [
      "adding",
      ["lanes_pkey"],
      () => transactions.run((tx) => work.add(tx, queue, [taskOf("new@blocked"), taskOf("done-7")])),
    ],
    ["a claim", ["lanes_due", "tasks_waiting", "tasks_pkey"], () => work.claim(taskClaim({ limit: 1 }))],
    ["an extension", ["tasks_pkey"], () => work.extend([running(1)], 60_000)],
    [
      "a failure",
      ["lanes_pkey", "tasks_waiting"],
      () => work.fail(running(2), { reason: "why", retryInMs: 0 }),
    ],
    ["a finish", ["tasks_pkey"], () => transactions.run((tx) => work.finish(tx, running(3)))],
    ["a retry", ["tasks_listed"], () => work.retry(queue, { deadSinceMs: Date.now() - 600_000 })],
    ["a page of one state", ["tasks_listed"], () => work.list({ queue, state: "done", limit: 10 })],
    ["a page of all", ["tasks_listed"], () => work.list({ queue, limit: 10 })],
    ["a read", ["tasks_pkey"], () => work.read(queue, "done-1")],
    ["the pruning", ["tasks_until"], () => work.prune()],
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
    // A plan is kept from the sixth time on.
    for (let name = 0; name < 10; name++) await round(name);
    await quiet.query(
      `INSERT INTO ${tasks} (queue, id, lane, number, body, added_at, due_at)
       SELECT $1, 'a' || n, 'ea' || n, n, '', now(), now() + interval '1 hour' FROM generate_series(1, 20000) AS n`,
      [queue],
    );
    await quiet.query(
      `INSERT INTO ${lanes} (queue, lane, due_at, last_number) SELECT queue, lane, due_at, number FROM ${tasks} WHERE lane LIKE 'ea%'`,
    );
    plans.length = 0;
    await round(10);
    const nested = plans.filter((plan) => !plan.includes("_work_"));
    expect(nested.length).toBeGreaterThan(10);
    for (const plan of nested) {
      const read = [...plan.matchAll(/shared hit=(\d+)/g)].map(([, pages]) => Number(pages));
      expect(Math.max(0, ...read)).toBeLessThan(60);
    }
  });
});
