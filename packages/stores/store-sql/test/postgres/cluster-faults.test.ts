import { fromPg } from "@countersign/store-sql/pg";
import { createStores } from "@countersign/store-sql";
import { describeOnPostgres, postgresUrl } from "@countersign/test-support/servers/engines.ts";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { Pool, type PoolClient } from "pg";
import { describeFaults, faultyDatabase, Faults, type FaultRow } from "../libraries/table/describe-faults.ts";
import { returnSchema, takeSchema } from "./spare-schemas.ts";

/** As the server says it. */
interface Said {
  readonly code: string;
  readonly message: string;
  readonly is: FaultRow[2];
}

const said: readonly Said[] = [
  { code: "40001", message: "could not serialize access", is: "conflict" },
  { code: "40P01", message: "deadlock detected", is: "conflict" },
  { code: "25006", message: "cannot execute INSERT in a read-only transaction", is: "unavailable" },
  { code: "57P01", message: "terminating connection due to administrator command", is: "unavailable" },
  { code: "57P02", message: "terminating connection because of crash", is: "unavailable" },
  { code: "57P03", message: "the database system is starting up", is: "unavailable" },
  { code: "25P03", message: "terminating connection due to idle transaction", is: "unavailable" },
  { code: "53300", message: "sorry, too many clients already", is: "unavailable" },
  { code: "08006", message: "connection failure", is: "unavailable" },
  { code: "08007", message: "transaction resolution unknown", is: "unavailable" },
  // Of servers that are distributed, and speak PostgreSQL's protocol.
  { code: "40003", message: "result is ambiguous", is: "unavailable" },
];
const titleOf = ({ code, message }: Said) => `${code} (${message})`;

const lost: readonly [name: string, error: object][] = [
  ["ETIMEDOUT", { code: "ETIMEDOUT", errno: -110, syscall: "connect" }],
  ["EPIPE", { code: "EPIPE", errno: -32, syscall: "write" }],
  ["ECONNRESET", { code: "ECONNRESET", errno: -104, syscall: "read" }],
  ["a connect of pg's that was too late", { message: "timeout expired" }],
  ["pg's pool", { message: "timeout exceeded when trying to connect" }],
  ["a line that pg has lost", { message: "Connection terminated unexpectedly" }],
];

function pgError({ code, message }: Said): Error {
  return Object.assign(new Error(message), { code, severity: "ERROR", routine: "r" });
}

/** How each library shows what the server has said. */
const libraries: readonly [name: string, show: (one: Said) => unknown][] = [
  ["pg and Kysely", pgError],
  ["postgres.js", (one) => Object.assign(pgError(one), { name: "PostgresError", query: "commit" })],
  ["Knex", (one) => Object.assign(pgError(one), { message: `insert into "t" - ${one.message}` })],
  ["Drizzle", (one) => new Error("Failed query: commit", { cause: pgError(one) })],
  ["TypeORM", (one) => Object.assign(new Error(one.message), { driverError: pgError(one), code: one.code })],
  ["Sequelize", (one) => Object.assign(new Error(one.message), { parent: pgError(one), sql: "" })],
  ["MikroORM", (one) => Object.assign(new Error(one.message), { code: one.code, previous: pgError(one) })],
  [
    "Prisma",
    (one) =>
      Object.assign(new Error("Raw query failed"), {
        code: "P2010",
        meta: { code: one.code, message: one.message },
      }),
  ],
  [
    "a driver adapter of Prisma",
    (one) =>
      Object.assign(new Error("Raw query failed"), {
        code: "P2010",
        meta: { driverAdapterError: { cause: { kind: "postgres", originalCode: one.code } } },
      }),
  ],
];

describe("faultOf", () => {
  const { transactions, close } = createStores({ database: fromPg(new Pool()), pruneIntervalMs: 0 });
  afterAll(() => close());

  describe.each(libraries)("by %s", (_library, show) => {
    test.each(said.map((one) => [titleOf(one), one] as const))("tells %s", (_title, one) => {
      expect(transactions.faultOf(show(one))).toBe(one.is);
      expect(transactions.faultOf(new Error("with its remedy", { cause: show(one) }))).toBe(one.is);
    });
  });

  test.each(lost)("tells %s", (_name, error) => {
    expect(transactions.faultOf(Object.assign(new Error("lost"), error))).toBe("unavailable");
  });
});

describeOnPostgres("on the server", () => {
  const faults = new Faults();
  const rows: readonly FaultRow[] = [
    ...said.map((one): FaultRow => [titleOf(one), pgError(one), one.is]),
    ...lost.map(([name, error]): FaultRow => [name, Object.assign(new Error(name), error), "unavailable"]),
  ];
  let pool: Pool;
  let schema: string;
  let close = () => {};

  beforeAll(async () => {
    pool = new Pool({ connectionString: postgresUrl, max: 10 });
    schema = await takeSchema(pool);
    await pool.query(`CREATE TABLE ${schema}.payouts (id text)`);
  });
  afterAll(async () => {
    close();
    await returnSchema(pool, schema);
    await pool.end();
  });

  describeFaults<PoolClient>("a fault of a cluster", faults, rows, () => {
    const database = faultyDatabase(fromPg(pool), faults);
    const stores = createStores({ database, schema, pruneIntervalMs: 0 });
    ({ close } = stores);
    return Promise.resolve({
      ...stores,
      handler: (tx, key) => tx.query(`INSERT INTO ${schema}.payouts VALUES ($1)`, [key]),
      async countOf(key) {
        const text = `SELECT count(*)::int AS count FROM ${schema}.payouts WHERE id = $1`;
        return (await pool.query<{ count: number }>(text, [key])).rows[0]?.count ?? 0;
      },
    });
  });
});
