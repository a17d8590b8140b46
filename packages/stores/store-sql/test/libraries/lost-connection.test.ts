import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { expect, test } from "@jest/globals";
import postgres from "postgres";
import { fromPostgresJs } from "@countersign/store-sql/postgres-js";
import { endSession, servers, unusedTable } from "./table/row.ts";

const url = servers.postgresql;

type Tx = postgres.TransactionSql;

test("fromPostgresJs never rolls back the transaction that took a lost connection's place", async () => {
  const sql = postgres(url, { max: 1 });
  const others = postgres(url, { max: 1 });
  const table = unusedTable();
  const database = fromPostgresJs(sql);
  await others`CREATE TABLE ${others(table)} (id text)`;
  try {
    const isInserted = signal();
    const isRefused = signal();
    let next: Promise<unknown> | undefined;
    const lost = database.run(async (tx) => {
      const [self] = await database.query(tx, "SELECT pg_backend_pid() AS id", []);
      await endSession((text) => others.unsafe(text), Number(self?.["id"]));
      next = database.run(async (other) => {
        await database.query(other, `INSERT INTO ${table} VALUES ($1)`, ["payment"]);
        isInserted.give();
        await isRefused.given;
        await database.query(other, "SELECT 1", []);
      });
      await isInserted.given;
      throw new Error("not paid");
    });
    await expect(lost).rejects.toThrow("not paid");
    isRefused.give();
    await next;
    expect(await others`SELECT id FROM ${others(table)}`).toHaveLength(1);
  } finally {
    await others`DROP TABLE ${others(table)}`;
    await Promise.all([sql.end(), others.end()]);
  }
});

test("fromPostgresJs survives a connection that is lost during a statement", async () => {
  const { hostname, port } = new URL(url);
  const sockets: Socket[] = [];
  const open = async (): Promise<Socket> => {
    const socket = connect(Number(port || 5432), hostname);
    sockets.push(socket);
    await once(socket, "connect");
    return socket;
  };
  const options = { max: 1, socket: open };
  const sql = postgres(url, options);
  const database = fromPostgresJs(sql);
  try {
    const lost = database.run(async (tx) => {
      setTimeout(() => sockets[0]?.destroy(), 50);
      await tx`SELECT pg_sleep(60)`;
    });
    await expect(lost).rejects.toThrow("CONNECTION_CLOSED");
    expect(await database.alone("SELECT 1 AS one", [])).toEqual([{ one: 1 }]);
  } finally {
    await sql.end();
  }
});

test.each<[string, (tx: Tx, kill: () => Promise<unknown>) => Promise<unknown>]>([
  [
    "waits behind another one",
    (tx, kill) => Promise.allSettled([tx`SELECT pg_sleep(60)`, tx`SELECT 1`, tx`SELECT 2`, kill()]),
  ],
  ["runs in a savepoint", (tx, kill) => tx.savepoint((inner) => [inner`SELECT pg_sleep(60)`, kill()])],
  ["follows in a savepoint", (tx, kill) => tx.savepoint(async (inner) => (await kill(), inner`SELECT 1`))],
])("fromPostgresJs fails at once when its session is ended while a statement %s", async (_case, work) => {
  const sql = postgres(url, { max: 1 });
  const others = postgres(url, { max: 1 });
  const database = fromPostgresJs(sql);
  try {
    const lost = database.run(async (tx) => {
      const [self] = await database.query(tx, "SELECT pg_backend_pid() AS id", []);
      await work(tx, () => endSession((text) => others.unsafe(text), Number(self?.["id"])));
      await database.query(tx, "SELECT 1", []);
    });
    await expect(lost).rejects.toThrow(
      /CONNECTION_CLOSED|ECONNRESET|lost its connection|terminating connection/,
    );
  } finally {
    await Promise.all([sql.end({ timeout: 0 }), others.end()]);
  }
});

test("fromPostgresJs rejects statements of a transaction that has ended, and throws nothing", async () => {
  const sql = postgres(url, { max: 1 });
  try {
    const ended: Tx[] = [];
    await fromPostgresJs(sql).run(async (tx) => void ended.push(tx));
    for (const tx of ended) {
      // Nobody awaits it: as a query of postgres.js it is not begun, and its rejection must not end the process.
      void tx`SELECT ${tx`1`}`;
      const late = [tx`SELECT 1`, tx.unsafe("SELECT 1"), tx.savepoint(() => []), tx`SELECT ${tx("a")}`];
      for (const statement of late) {
        // oxlint-disable-next-line no-await-in-loop -- one after the other
        await expect(statement).rejects.toThrow("the handler's transaction is closed");
      }
    }
  } finally {
    await sql.end();
  }
});

function signal(): { readonly given: Promise<void>; give(): void } {
  let give = (): void => {};
  const given = new Promise<void>((resolve) => {
    give = resolve;
  });
  return { given, give: () => give() };
}
