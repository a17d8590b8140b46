import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import type { PostgresLocation } from "@countersign/example-settings";
import { answerOf } from "@countersign/idempotency/internal";
import { afterAll, beforeAll, beforeEach, expect, test } from "@jest/globals";
import { Client } from "pg";
import { pino } from "pino";
import { afterTest } from "@countersign/test-support/runs/after-test.ts";
import { describeOnPostgres, postgresUrl } from "@countersign/test-support/servers/engines.ts";
import {
  startPrivatePostgres,
  type PrivatePostgres,
} from "@countersign/test-support/servers/private-postgres.ts";
import { openPostgresStorage } from "../src/engines/postgres/storage.ts";
import type { PlatformStorage } from "../src/engines/storage.ts";
import { partyLedgerOn } from "../src/ledgers/parties.ts";
import type { Payouts } from "../src/transfers.ts";
import { accept, errorOf, isolatedPostgres, payout, payoutsOn, tasks } from "./test-storage.ts";

// Some tests start a server.

const logger = pino({ level: "silent" });

describeOnPostgres("openPostgresStorage", () => {
  let location: PostgresLocation;
  let client: Client;

  beforeEach(async () => {
    client = new Client({ connectionString: postgresUrl });
    await client.connect();
    afterTest(() => client.end());
    location = isolatedPostgres();
  });

  async function open(url = location.url): Promise<PlatformStorage & Pick<Payouts, "ledger">> {
    const storage = await openPostgresStorage({ ...location, url }, logger);
    afterTest(() => storage.close());
    return { ...storage, ...(await payoutsOn(storage)) };
  }

  test("creates the schema and the tables once, also for processes that start at once, and keeps what is there", async () => {
    const [storage] = await Promise.all([open(), open(), open()]);
    await accept(storage, payout("a.b.c"));
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
    afterTest(async () => {
      await client.query(`DROP OWNED BY "${role}"`);
      await client.query(`DROP ROLE "${role}"`);
    });
    const url = new URL(location.url);
    url.username = role;
    expect(await accept(await open(url.href), payout("a.b.c"))).toBe("accepted");
  });

  test("refuses tables of these names that are another program's", async () => {
    await client.query(`CREATE SCHEMA "${location.schema}"`);
    await client.query(`CREATE TABLE "${location.schema}".webhook_events (id integer)`);
    const error = await errorOf(openPostgresStorage(location, logger));
    expect(error.message).toMatch(
      /^STORE_URL: expected a database with the tables of the platform \(.*event_id/,
    );
  });

  test("keeps keys apart that the driver would send as one, and texts that PostgreSQL takes not", async () => {
    const storage = await open();
    const { ledger } = storage;
    const keys = ["a.b.\ud800", "a.b.\ud801", "a.b.\0", "a.b.\\u0000"];
    for (const key of keys) expect(await ledger.accept(payout(key))).toBe("accepted");
    expect((await ledger.inspect()).map(({ idempotency_key }) => idempotency_key)).toEqual(keys);
    const orders = (await tasks(storage, "transfers")).map(({ body }) => JSON.parse(body) as unknown);
    expect(orders).toMatchObject(keys.map((idempotencyKey) => ({ idempotencyKey })));
  });

  test("limits its transactions and commits them durably, whatever the default is", async () => {
    const url = new URL(location.url);
    url.searchParams.set("options", "-c synchronous_commit=off");
    const { database } = await open(url.href);
    const names = ["statement_timeout", "idle_in_transaction_session_timeout", "synchronous_commit"];
    const shown = `SELECT ${names.map((name) => `current_setting('${name}') AS ${name}`).join(", ")}`;
    const usual = await database.query([shown]);
    const inside = await database.transaction(function* (tx) {
      return yield* answerOf(database.query([shown], tx));
    });
    const expected = { statement_timeout: "5s", idle_in_transaction_session_timeout: "10s" };
    expect(inside).toEqual([{ ...expected, synchronous_commit: "on" }]);
    expect(await database.query([shown])).toEqual(usual);
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
    const storage = await openPostgresStorage(
      { kind: "postgres", url: url.href, schema: "public", storesSchema: "public", variable: "STORE_URL" },
      logger,
    );
    expect(await partyLedgerOn(storage.database).inspectEvents()).toEqual([]);
    await storage.close();
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
      const error = await errorOf(openPostgresStorage(location, logger));
      expect(error.variable).toBe(variable);
      expect(error.message).toMatch(message);
      expect(error.message).not.toMatch(/hunter2|\n/);
    }
  });
});
