import { afterAll, describe, expect, test } from "@jest/globals";
import { Client } from "pg";
import { startPgBouncer } from "./pgbouncer.ts";
import { startPrivatePostgres } from "./private-postgres.ts";

const postgres = await startPrivatePostgres();
const bouncer = postgres && (await startPgBouncer(postgres.url, { poolSize: 2 }));

afterAll(async () => {
  await bouncer?.close();
  await postgres?.close();
});

async function query(url: string, ...texts: readonly string[]): Promise<unknown> {
  const client = new Client({ connectionString: url });
  client.on("error", () => {});
  await client.connect();
  try {
    let value: unknown;
    for (const text of texts) value = (await client.query({ text, rowMode: "array" })).rows.at(0)?.at(0);
    return value;
  } finally {
    await client.end();
  }
}

const describeOn = (server: object | undefined) => (server === undefined ? describe.skip : describe);

describeOn(postgres)("startPrivatePostgres", () => {
  const url = postgres?.url ?? "";

  test("serves on loopback alone and flushes its commits", async () => {
    expect(await query(url, "SHOW listen_addresses")).toBe("127.0.0.1");
    expect(await query(url, "SHOW fsync")).toBe("on");
  });

  test.each(["fast", "immediate"] as const)("keeps its data and port over a %s stop", async (mode) => {
    await query(url, `CREATE TABLE kept_${mode} (id int)`, `INSERT INTO kept_${mode} VALUES (7)`);
    await postgres?.stop(mode);
    await expect(query(url, "SELECT 1")).rejects.toMatchObject({ code: "ECONNREFUSED" });
    await postgres?.start();
    expect(await query(url, `SELECT id FROM kept_${mode}`)).toBe(7);
  });

  test("takes settings, and is gone with its data after close()", async () => {
    const other = await startPrivatePostgres({ settings: { max_connections: 7 } });
    const otherUrl = other?.url ?? "";
    expect(await query(otherUrl, "SHOW max_connections")).toBe("7");
    await other?.close();
    await expect(query(otherUrl, "SELECT 1")).rejects.toMatchObject({ code: "ECONNREFUSED" });
  });
});

describeOn(bouncer)("startPgBouncer", () => {
  const url = bouncer?.url ?? "";

  test("gives a server connection for a transaction, not for a session", async () => {
    const [first, second] = [new Client({ connectionString: url }), new Client({ connectionString: url })];
    await Promise.all([first.connect(), second.connect()]);
    try {
      const backend = async (client: Client) =>
        (await client.query("SELECT pg_backend_pid() AS pid")).rows[0];
      expect(await backend(second)).toEqual(await backend(first));
      await first.query("BEGIN");
      const inTransaction = await backend(first);
      expect(await backend(second)).not.toEqual(inTransaction);
      expect(await backend(first)).toEqual(inTransaction);
      await first.query("COMMIT");
    } finally {
      await Promise.all([first.end(), second.end()]);
    }
  });
});
