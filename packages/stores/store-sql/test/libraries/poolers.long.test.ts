import { afterAll, describe, expect, test } from "@jest/globals";
import { createStores, migrate } from "@countersign/store-sql";
import { isolatedName, postgresUrl } from "@countersign/test-support/servers/engines.ts";
import { type PgBouncer, startPgBouncer } from "@countersign/test-support/servers/pgbouncer.ts";
import { eventually } from "@countersign/test-support/runs/eventually.ts";
import { Pool } from "pg";
import { describePayments } from "./table/describe-payments.ts";
import { kyselyRow } from "./table/kysely.ts";
import { openStores, payerOn } from "./table/payer.ts";
import { pgRow } from "./table/pg.ts";
import { postgresJsRow } from "./table/postgres-js.ts";
import { servers, type TableRow } from "./table/row.ts";

// Fewer connections to the server than the libraries of one test open to the pooler.
const isolations = ["read committed", "repeatable read", "serializable"];
const inTransactionMode = await Promise.all(
  isolations.map((isolation) =>
    start({ poolSize: 3, connectQuery: `SET default_transaction_isolation TO '${isolation}'` }),
  ),
);
const inStatementMode = await start({ mode: "statement" });

afterAll(async () => {
  await Promise.all([...inTransactionMode, inStatementMode].map(async (bouncer) => bouncer?.close()));
});

for (const [index, bouncer] of inTransactionMode.entries()) {
  if (bouncer === undefined) continue;
  const behind = `behind PgBouncer, ${isolations[index]}`;
  describePayments({ ...pgRow(bouncer.url), name: `pg ${behind}` });
  describePayments({ ...kyselyRow("postgresql", bouncer.url), name: `Kysely ${behind}` });
  describePayments(postgresJsRow(`postgres.js ${behind}`, { prepare: false }, bouncer.url));
  test(`the server's default isolation is in force ${behind}`, async () => {
    const opened = await pgRow(bouncer.url).open();
    const isolation = "SELECT current_setting('transaction_isolation') AS isolation";
    const rows = await opened.database.run((tx) => opened.database.query(tx, isolation, []));
    await opened.end();
    expect(rows).toEqual([{ isolation: isolations[index] }]);
  });
}

const [pooled] = inTransactionMode;
(pooled === undefined ? test.skip : test)(
  "postgres.js that prepares statements behind a PgBouncer without any: what is answered as paid is paid",
  async () => {
    const opened = await postgresJsRow("postgres.js", {}, pooled?.url).open();
    const stores = await openStores(opened.database);
    try {
      // Prepared by nobody: the first statement that a server may not know is COMMIT.
      const pay = payerOn(stores, (tx, key) =>
        opened.database.query(tx, `INSERT INTO ${opened.table} (id) VALUES ('${key}')`, []),
      );
      const answers: unknown[] = [];
      for (let round = 0; round < 10; round++) {
        const keys = Array.from({ length: 6 }, (_, index) => `${round} ${index}`);
        // oxlint-disable-next-line no-await-in-loop -- one round after the other
        answers.push(...(await Promise.all(keys.map((key) => pay(key)))));
      }
      const told = answers.filter((answer) => answer === 200);
      expect(told.length).toBeGreaterThan(0);
      expect(told).toHaveLength(await opened.countRows());
    } finally {
      await stores.close();
      await opened.end();
    }
  },
);

(inStatementMode === undefined ? describe.skip : describe)("PgBouncer in statement mode", () => {
  const url = inStatementMode?.url ?? "";
  refusesFirstUse(pgRow(url), refusalOf("pg"));
  refusesFirstUse(kyselyRow("postgresql", url), refusalOf("Kysely"));
  // It drops the pooler's last words.
  refusesFirstUse(postgresJsRow("postgres.js", { prepare: false }, url), { code: "CONNECTION_CLOSED" });
});

function refusesFirstUse<Tx>(row: TableRow<Tx>, error: object): void {
  test(`is refused by ${row.name}, before any key is written`, async () => {
    const schema = isolatedName("pooler");
    const direct = new Pool({ connectionString: servers.postgresql });
    await migrate(direct, { schema });
    const opened = await row.open();
    const stores = createStores({ database: opened.database, schema, pruneIntervalMs: 0 });
    const count = async (table: string) => (await direct.query(`SELECT FROM ${table}`)).rowCount;
    try {
      let runs = 0;
      const run = () =>
        stores.transactions.run(async (tx) => {
          runs += 1;
          await opened.insertByHandler(tx, "payment");
        });
      await expect(run()).rejects.toMatchObject(error);
      await expect(run()).rejects.toThrow();
      // An endpoint answers 503, with the error as its cause.
      expect(await payerOn(stores, () => (runs += 1))("k")).toBe("transaction-unavailable");
      expect(runs).toBe(0);
      expect(await count(opened.table)).toBe(0);
      expect(await count(`${schema}.countersign_idempotency WHERE key <> ''`)).toBe(0);
    } finally {
      stores.close();
      // A pool may still have the connection that the pooler has ended.
      await eventually(() =>
        opened.end().then(
          () => true,
          () => false,
        ),
      );
      await direct.query(`DROP SCHEMA ${schema} CASCADE`);
      await direct.end();
    }
  });
}

function refusalOf(library: string): object {
  const what = `${library} is behind a pooler in statement mode; use its transaction or session mode`;
  return { name: "TypeError", message: expect.stringContaining(what) };
}

async function start(options: Parameters<typeof startPgBouncer>[1]): Promise<PgBouncer | undefined> {
  return postgresUrl === undefined ? undefined : startPgBouncer(postgresUrl, options);
}
