import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { isGuardError } from "@countersign/core";
import type { PostgresLocation } from "@countersign/example-settings";
import { withPostgresTransaction } from "@countersign/store-postgres";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, jest, test } from "@jest/globals";
import { Client } from "pg";
import { pino } from "pino";
import { describeOnPostgres, postgresUrl } from "@countersign/test-support/servers/engines.ts";
import {
  startPrivatePostgres,
  type PrivatePostgres,
} from "@countersign/test-support/servers/private-postgres.ts";
import { openPostgresLedgers } from "../src/engines/postgres/storage.ts";
import { openPostgresStorage, type PostgresStorage } from "../src/engines/postgres/storage.ts";
import { dropSchema, errorOf, isolatedPostgres, payout } from "./test-storage.ts";

// Some tests start a server.
jest.setTimeout(30_000);

const logger = pino({ level: "silent" });
const complete = (): void => {};

describeOnPostgres("openPostgresStorage", () => {
  let location: PostgresLocation;
  let client: Client;
  const opened: PostgresStorage[] = [];

  beforeEach(async () => {
    location = isolatedPostgres();
    client = new Client({ connectionString: postgresUrl });
    await client.connect();
  });

  afterEach(async () => {
    await Promise.all(opened.splice(0).map((storage) => storage.close()));
    await client.end();
    await dropSchema(location.schema);
  });

  async function open(): Promise<PostgresStorage> {
    const storage = await openPostgresStorage(location, logger);
    opened.push(storage);
    return storage;
  }

  test("creates the schema and the tables once, also for processes that start at once, and keeps what is there", async () => {
    const [storage] = await Promise.all([open(), open(), open()]);
    await storage.ledger.accept(payout("a.b.c"), complete);
    expect(await (await open()).ledger.inspect()).toHaveLength(1);
  });

  test("is enough for a role that may not create anything, once the tables are there", async () => {
    await open();
    const role = `${location.schema}_role`;
    await client.query(`CREATE ROLE "${role}" LOGIN`);
    const schema = `"${location.schema}"`;
    await client.query(`GRANT USAGE ON SCHEMA ${schema} TO "${role}"`);
    await client.query(`GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ${schema} TO "${role}"`);
    await client.query(`GRANT USAGE ON ALL SEQUENCES IN SCHEMA ${schema} TO "${role}"`);
    try {
      const url = new URL(location.url);
      url.username = role;
      const storage = await openPostgresStorage({ ...location, url: url.href }, logger);
      expect(await storage.ledger.accept(payout("a.b.c"), complete)).toBe("accepted");
      await storage.close();
    } finally {
      await client.query(`DROP OWNED BY "${role}"`);
      await client.query(`DROP ROLE "${role}"`);
    }
  });

  test("refuses tables of these names that are another program's", async () => {
    await client.query(`CREATE SCHEMA "${location.schema}"`);
    await client.query(`CREATE TABLE "${location.schema}".webhook_events (id integer)`);
    const error = await errorOf(openPostgresStorage(location, logger));
    expect(error.message).toMatch(
      /^STORE_URL: expected a database with the tables of the platform \(.*event_id/,
    );
  });

  describe("its outbox", () => {
    test("passes over a task that another process is about to take", async () => {
      const { ledger, outbox, pool } = await open();
      await ledger.accept(payout("a.b.1"), complete);
      await ledger.accept(payout("a.b.2"), complete);
      await withPostgresTransaction(pool, async (other) => {
        const lock = `SELECT id FROM "${location.schema}".outbox WHERE idempotency_key = 'a.b.1' FOR UPDATE`;
        await other.query(lock);
        expect(await outbox.claim("transfer", 60_000)).toMatchObject({ idempotencyKey: "a.b.2" });
        expect(await outbox.claim("transfer", 60_000)).toBeUndefined();
      });
      expect(await outbox.claim("transfer", 60_000)).toMatchObject({ idempotencyKey: "a.b.1" });
    });

    test("runs on the server's clock: leases and pauses begin and end by it", async () => {
      const { ledger, outbox } = await open();
      await ledger.accept(payout("a.b.c"), complete);
      const task = await outbox.claim("transfer", 60_000);
      const real = Date.now;
      // A process whose clock is an hour ahead takes nothing away from the others.
      Date.now = () => real() + 3_600_000;
      try {
        expect(await outbox.claim("transfer", 60_000)).toBeUndefined();
        await outbox.retry(task!.id, 0, "again");
        expect(await outbox.claim("transfer", 60_000)).toMatchObject({ attempts: 2 });
        await outbox.retry(task!.id, 60_000, "later");
        expect(await outbox.claim("transfer", 60_000)).toBeUndefined();
      } finally {
        Date.now = real;
      }
    });
  });

  test("keeps keys apart that the driver would send as one, and texts that PostgreSQL takes not", async () => {
    const { ledger } = await open();
    const keys = ["a.b.\ud800", "a.b.\ud801", "a.b.\0", "a.b.\\u0000"];
    for (const key of keys) expect(await ledger.accept(payout(key), undefined)).toBe("accepted");
    expect((await ledger.inspect()).map(({ idempotency_key }) => idempotency_key)).toEqual(keys);
    expect(await ledger.order("a.b.\ud801")).toMatchObject({ idempotencyKey: "a.b.\ud801" });
  });

  test("survives the loss of an idle connection and of one in use", async () => {
    const { ledger, pool } = await open();
    const pid = async (): Promise<number> =>
      (await pool.query<{ pid: number }>("SELECT pg_backend_pid() AS pid")).rows[0]!.pid;
    await client.query("SELECT pg_terminate_backend($1)", [await pid()]);
    while (pool.totalCount > 0) await new Promise((resolve) => setTimeout(resolve, 10));
    expect(await ledger.accept(payout("a.b.1"), complete)).toBe("accepted");

    const cut = ledger.accept(payout("a.b.2"), async (transaction) => {
      const { rows } = await (transaction as Client).query<{ pid: number }>("SELECT pg_backend_pid() AS pid");
      await client.query("SELECT pg_terminate_backend($1)", [rows[0]!.pid]);
      await new Promise((resolve) => setTimeout(resolve, 50));
    });
    const error: unknown = await Promise.resolve(cut).catch((thrown: unknown) => thrown);
    expect(isGuardError(error) && [error.status, error.code, error.headers["Retry-After"]]).toEqual([
      503,
      "database-unavailable",
      "2",
    ]);
    expect(await ledger.accept(payout("a.b.2"), complete)).toBe("accepted");
    expect(await ledger.inspect()).toHaveLength(2);
  });

  test("has connections for keys and nonces that no transaction of the ledgers keeps busy", async () => {
    const { pool, stores } = await open();
    const busy = await Promise.all(Array.from({ length: 10 }, () => pool.connect()));
    const claim = { token: "t", fingerprint: "f", leaseMs: 10_000, recovery: "rerun" } as const;
    expect(await stores.idempotency.claim("k", claim)).toMatchObject({ status: "acquired" });
    expect(await stores.idempotency.heartbeat("k", "t", 10_000)).toBe("ok");
    for (const connection of busy) connection.release();
  });

  test("ends an event before it writes what the event says", async () => {
    const { parties } = await open();
    let written: number | null = null;
    const event = { event_id: "e-1", type: "x.y", timestamp: "2026-01-01T00:00:00Z", data: {} };
    await parties.record(event as never, async (transaction) => {
      const seen = `SELECT FROM "${location.schema}".webhook_events`;
      written = (await (transaction as Client).query(seen)).rowCount;
    });
    expect(written).toBe(0);
    expect(await parties.inspectEvents()).toHaveLength(1);
  });

  test("limits its transactions and commits them durably, whatever the default is", async () => {
    const url = new URL(location.url);
    url.searchParams.set("options", "-c synchronous_commit=off");
    const storage = await openPostgresStorage({ ...location, url: url.href }, logger);
    opened.push(storage);
    const settings = async (connection: Pick<Client, "query">): Promise<readonly unknown[]> => {
      const names = ["statement_timeout", "idle_in_transaction_session_timeout", "synchronous_commit"];
      const shown = names.map((name) => `current_setting('${name}') AS ${name}`).join(", ");
      return (await connection.query(`SELECT ${shown}`)).rows;
    };
    const usual = await settings(storage.pool);
    let inside: readonly unknown[] = [];
    await storage.ledger.accept(payout("a.b.c"), async (transaction) => {
      inside = await settings(transaction as Client);
    });
    expect(inside).toEqual([
      {
        statement_timeout: "5s",
        idle_in_transaction_session_timeout: "10s",
        synchronous_commit: "on",
      },
    ]);
    expect(await settings(storage.pool)).toEqual(usual);
  });

  test("gives a step up that waits for a lock for too long, and says 503", async () => {
    const storage = await open();
    const { ledger, pool } = storage;
    await ledger.accept(payout("a.b.c"), undefined);
    await withPostgresTransaction(pool, async (other) => {
      await other.query(`LOCK TABLE "${location.schema}".payouts IN ACCESS EXCLUSIVE MODE`);
      const error: unknown = await Promise.resolve(ledger.accept(payout("d.e.f"), complete)).catch(
        (thrown: unknown) => thrown,
      );
      expect(isGuardError(error) && error.code).toBe("database-unavailable");
    });
    expect(await ledger.inspect()).toHaveLength(1);
  });
});

describeOnPostgres("openPostgresStorage, with a server that does not let it in", () => {
  let server: PrivatePostgres | undefined;
  let folder: string;

  beforeAll(async () => {
    folder = mkdtempSync(path.join(tmpdir(), "platform-hba-"));
    const hba = path.join(folder, "pg_hba.conf");
    writeFileSync(hba, "host all app 127.0.0.1/32 scram-sha-256\nhost all postgres 127.0.0.1/32 trust\n");
    // The server may run as another user.
    chmodSync(folder, 0o755);
    server = await startPrivatePostgres({ settings: { hba_file: hba } });
    if (server === undefined) return;
    const client = new Client({ connectionString: server.url });
    await client.connect();
    await client.query("CREATE ROLE app LOGIN PASSWORD 'test-password'");
    await client.query("GRANT CREATE ON SCHEMA public TO app");
    await client.end();
  });

  afterAll(async () => {
    await server?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  test("lets the right password in", async () => {
    if (server === undefined) return;
    const url = new URL(server.url);
    url.username = "app";
    url.password = "test-password";
    const ledgers = await openPostgresLedgers(
      { kind: "postgres", url: url.href, schema: "public", variable: "STORE_URL" },
      logger,
    );
    expect(await ledgers.ledger.inspect()).toEqual([]);
    await ledgers.close();
  });

  test.each<[string, (url: URL) => void, RegExp]>([
    ["a server that is not there", (url) => void (url.port = "1"), /\(nobody listens there\)$/],
    [
      "a database that is not there",
      (url) => void (url.pathname = "/nowhere"),
      /\(there is no such database\)$/,
    ],
    ["a wrong password", (url) => void (url.username = "app"), /\(user name or password are wrong\)$/],
    [
      "no password",
      (url) => {
        url.username = "app";
        url.password = "";
      },
      /\(a password is needed\)$/,
    ],
    [
      "a role that it does not let in",
      (url) => void (url.username = "nobody"),
      /\(the server does not know this user/,
    ],
    ["TLS that the server has not", (url) => void (url.search = "?sslmode=verify-full"), /\(TLS fails/],
  ])("names the variable, and no password, for %s", async (_name, change, message) => {
    if (server === undefined) return;
    const url = new URL(server.url);
    url.password = "hunter2";
    change(url);
    for (const variable of ["STORE_URL", "DATABASE_URL"] as const) {
      const location: PostgresLocation = { kind: "postgres", url: url.href, schema: "public", variable };
      const error = await errorOf(openPostgresLedgers(location, logger));
      expect(error.variable).toBe(variable);
      expect(error.message).toMatch(message);
      expect(error.message).not.toMatch(/hunter2|\n/);
    }
  });
});
