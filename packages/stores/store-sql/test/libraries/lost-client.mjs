// A process whose work waits for longer than its transaction may stand idle, and then loses an idle connection: node lost-client.mjs
// LIBRARY. Says what became of the transaction and of the next statements. An `error` event that nobody listens to ends it before.
import process from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import { Pool } from "pg";
import { fromDrizzle } from "@countersign/store-sql/drizzle";
import { fromKnex } from "@countersign/store-sql/knex";
import { fromKysely } from "@countersign/store-sql/kysely";
import { fromMikroOrm } from "@countersign/store-sql/mikro-orm";
import { fromPg } from "@countersign/store-sql/pg";
import { fromPostgresJs } from "@countersign/store-sql/postgres-js";
import { fromSequelize } from "@countersign/store-sql/sequelize";
import { fromTypeOrm } from "@countersign/store-sql/typeorm";

const [library] = process.argv.slice(2);
const url = process.env["DATABASE_URL"];

function poolOf() {
  const pool = new Pool({ connectionString: url, max: 1 });
  // As the page asks every app with a pool of pg.
  pool.on("error", () => {});
  return pool;
}

function listening(pool) {
  return pool.on("connect", (client) => client.on("error", () => {}));
}

async function kyselyOn(pool) {
  const { Kysely, PostgresDialect } = await import("kysely");
  return fromKysely(new Kysely({ dialect: new PostgresDialect({ pool }) }));
}

// Each alone: together they take seconds to load.
const open = {
  pg: () => fromPg(poolOf()),
  async Drizzle() {
    const { drizzle } = await import("drizzle-orm/node-postgres");
    return fromDrizzle(drizzle(poolOf()));
  },
  "Kysely, whose pool's clients have a listener": () => kyselyOn(listening(poolOf())),
  Kysely: () => kyselyOn(poolOf()),
  async Knex() {
    const { default: knex } = await import("knex");
    return fromKnex(knex({ client: "pg", connection: url }));
  },
  async TypeORM() {
    const { DataSource } = await import("typeorm");
    return fromTypeOrm(await new DataSource({ type: "postgres", url }).initialize());
  },
  async Sequelize() {
    const { Sequelize } = await import("sequelize");
    return fromSequelize(new Sequelize(url, { logging: false }));
  },
  async MikroORM() {
    const { EntitySchema, MikroORM } = await import("@mikro-orm/postgresql");
    const entity = new EntitySchema({ name: "row", properties: { id: { type: "string", primary: true } } });
    return fromMikroOrm(await MikroORM.init({ clientUrl: url, entities: [entity] }));
  },
  async "postgres.js"() {
    const { default: postgres } = await import("postgres");
    return fromPostgresJs(postgres(url, { max: 1 }));
  },
};

const others = new Pool({ connectionString: url, max: 1 });
/** Whether the session is still there. */
async function isThere(pid) {
  const { rows } = await others.query("SELECT 1 FROM pg_stat_activity WHERE pid = $1", [pid]);
  return rows.length > 0;
}

const database = await open[library]();
let ended = "committed";
try {
  await database.run(async (tx) => {
    await database.query(tx, "SET LOCAL idle_in_transaction_session_timeout = 50", []);
    const [self] = await database.query(tx, "SELECT pg_backend_pid() AS pid", []);
    // Past the end of the session, and past what it tells this process.
    while (await isThere(self.pid)) await sleep(20);
    await sleep(100);
    await database.query(tx, "SELECT 1", []);
  });
} catch {
  ended = "rolled back";
}

async function saidNext() {
  const [row] = await database.alone("SELECT 'goes on' AS said, pg_backend_pid() AS pid", []);
  return row;
}

const { said, pid } = await saidNext();
await others.query("SELECT pg_terminate_backend($1)", [pid]);
while (await isThere(pid)) await sleep(20);
await sleep(100);
// A pool may hand the lost connection out once more.
const next = await saidNext().catch(saidNext);
process.stdout.write(`${ended}, ${said}, ${next.said}\n`);
process.exit(0);
