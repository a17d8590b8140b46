// A process that opens its library as the page prints it, and loses an idle connection and one in use: node lost-sessions.mjs LIBRARY.
// An `error` event that nobody listens to ends the process before it says "goes on".
import process from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import { fromDrizzle } from "@countersign/store-sql/drizzle";
import { fromKysely } from "@countersign/store-sql/kysely";
import { fromPg } from "@countersign/store-sql/pg";
import { Pool } from "pg";
import { openDatabase as openDrizzle } from "../dist/databases/drizzle.js";
import { openDatabase as openKysely } from "../dist/databases/kysely.js";
import { openPool } from "../dist/databases/pg.js";

const [library] = process.argv.slice(2);
const url = process.env["DATABASE_URL"];
const open = {
  pg: () => fromPg(openPool(url)),
  Drizzle: () => fromDrizzle(openDrizzle(url)),
  Kysely: () => fromKysely(openKysely(url)),
};

const others = new Pool({ connectionString: url, max: 1 });

/** Ends a session, and waits past what the server tells this process. */
async function end(pid) {
  await others.query("SELECT pg_terminate_backend($1)", [pid]);
  for (;;) {
    const { rowCount } = await others.query("SELECT FROM pg_stat_activity WHERE pid = $1", [pid]);
    if (rowCount === 0) break;
    await sleep(20);
  }
  await sleep(100);
}

const ownPid = "SELECT pg_backend_pid() AS pid";
const database = open[library]();
const [idle] = await database.alone(ownPid, []);
await end(idle.pid);
const failed = await database
  .run(async (tx) => {
    const [inUse] = await database.query(tx, ownPid, []);
    await end(inUse.pid);
    await database.query(tx, "SELECT 1", []);
  })
  .then(
    () => "committed",
    () => "rolled back",
  );
const [row] = await database.alone("SELECT 'goes on' AS said", []);
process.stdout.write(`${failed}, ${row.said}\n`);
process.exit(0);
