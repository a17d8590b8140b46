import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { fromPg } from "@countersign/store-sql/pg";
import { describeOnPostgres, isolatedName, postgresUrl } from "@countersign/test-support/servers/engines.ts";
import { afterTest } from "@countersign/test-support/runs/after-test.ts";
import { Client, Pool, type PoolClient, type PoolConfig } from "pg";

const schema = isolatedName("from_pg");
const insert = `INSERT INTO ${schema}.notes VALUES ($1)`;

function connect(config: PoolConfig = {}): Pool {
  const pool = new Pool({ connectionString: postgresUrl, max: 1, ...config });
  pool.on("error", () => {});
  afterTest(() => pool.end());
  return pool;
}

/** A pool with the texts that its clients have sent. */
function recorded(): { pool: Pool; sent: string[] } {
  const pool = connect();
  const sent: string[] = [];
  pool.on("connect", (client) => {
    const query = client.query.bind(client) as (...values: unknown[]) => unknown;
    Object.assign(client, {
      query: (...values: unknown[]) => {
        sent.push(String(values[0]));
        return query(...values);
      },
    });
  });
  return { pool, sent };
}

async function notes(): Promise<unknown[]> {
  const { rows } = await connect().query<{ note: string }>(`SELECT note FROM ${schema}.notes ORDER BY note`);
  return rows.map(({ note }) => note);
}

describeOnPostgres("fromPg()", () => {
  beforeAll(async () => {
    const pool = new Pool({ connectionString: postgresUrl, max: 1 });
    await pool.query(`CREATE SCHEMA ${schema}; CREATE TABLE ${schema}.notes (note text)`);
    await pool.end();
  });

  afterAll(async () => {
    const pool = new Pool({ connectionString: postgresUrl, max: 1 });
    await pool.query(`DROP SCHEMA ${schema} CASCADE`);
    await pool.end();
  });

  test("refuses what is no pool", () => {
    expect(() => fromPg({} as Pool)).toThrow("fromPg: needs a Pool of pg");
    // @ts-expect-error -- as a caller without types
    expect(() => fromPg(new Client())).toThrow("needs a Pool of pg, not a Client");
  });

  test("refuses a client of another transaction", async () => {
    const pool = connect({ max: 2 });
    const database = fromPg(pool);
    const foreign = fromPg(pool).run((client) => database.query(client, "SELECT 1", []));
    await expect(foreign).rejects.toThrow("the client that the handler was given");
  });

  test("gives the place of a lost session back, also while its work never ends", async () => {
    const pool = connect();
    const database = fromPg(pool);
    let goOn = (): void => {};
    const waits = new Promise<void>((resolve) => (goOn = resolve));
    const lost = database.run(async (client) => {
      const [self] = await database.query(client, "SELECT pg_backend_pid() AS pid", []);
      await connect().query("SELECT pg_terminate_backend($1)", [self?.["pid"]]);
      await waits;
      await database.query(client, insert, ["late"]);
    });
    const ended = expect(lost).rejects.toThrow("not queryable");
    expect(await database.run((client) => database.query(client, "SELECT 1 AS one", []))).toEqual([
      { one: 1 },
    ]);
    goOn();
    await ended;
    expect(await notes()).not.toContain("late");
    // Given back once: nobody else's place is.
    expect([pool.totalCount, pool.idleCount]).toEqual([1, 1]);
  });

  test("sends BEGIN with the first script, in one message", async () => {
    const { pool, sent } = recorded();
    const database = fromPg(pool);
    const rows = await database.run(async (client) => {
      const answer = await database.script?.(client, "SELECT 1 AS one; SAVEPOINT here");
      await database.query(client, insert, ["script"]);
      return answer;
    });
    expect(rows).toEqual([{ one: 1 }]);
    expect(sent).toEqual(["BEGIN; SELECT 1 AS one; SAVEPOINT here", insert, "COMMIT"]);
    expect(await notes()).toContain("script");
  });

  test("sends BEGIN alone before any other first statement, and waits for it", async () => {
    const { pool, sent } = recorded();
    const database = fromPg(pool);
    await database.run(async (client) => {
      await Promise.all([client.query(insert, ["both"]), database.script?.(client, "SELECT 1")]);
    });
    expect(sent).toEqual(["BEGIN", insert, "SELECT 1", "COMMIT"]);
  });

  test("sends nothing when nothing is done, and keeps the client", async () => {
    const { pool, sent } = recorded();
    const database = fromPg(pool);
    expect(await database.run(() => Promise.resolve("done"))).toBe("done");
    await expect(database.run(() => Promise.reject(new Error("no")))).rejects.toThrow("no");
    expect(sent).toEqual([]);
    expect(pool).toMatchObject({ totalCount: 1, idleCount: 1 });
  });

  test.each<[string, (client: PoolClient) => unknown]>([
    ["a callback", (client) => client.query("SELECT 1", () => {})],
    [
      "an object that answers by events",
      (client) => client.query({ text: "SELECT 1", submit() {} } as never),
    ],
  ])("refuses a first statement with %s, which could not wait for BEGIN", async (_case, send) => {
    const database = fromPg(connect());
    await expect(database.run(async (client) => send(client))).rejects.toThrow(/first statement/);
  });

  test("takes such statements once the transaction is open", async () => {
    const database = fromPg(connect());
    const answer = await database.run(async (client) => {
      await database.query(client, "SELECT 1", []);
      return new Promise((resolve) => {
        client.query("SELECT 2 AS two", (_error, { rows }) => resolve(rows));
      });
    });
    expect(answer).toEqual([{ two: 2 }]);
  });

  test.each([
    ["in a script", true],
    ["alone", false],
  ])("sends no statement after a BEGIN that failed %s", async (_case, isScript) => {
    const failing = connect();
    failing.on("connect", (client) => {
      const query = client.query.bind(client) as (...values: unknown[]) => unknown;
      Object.assign(client, {
        query: (text: string, ...values: unknown[]) =>
          text.startsWith("BEGIN")
            ? Promise.reject(new Error("no transactions here"))
            : query(text, ...values),
      });
    });
    const database = fromPg(failing);
    const run = database.run(async (client) => {
      if (isScript) await expect(database.script?.(client, "SELECT 1")).rejects.toThrow("no transactions");
      await expect(client.query(insert, ["late"])).rejects.toThrow("no transactions");
      await expect(
        database.script?.(client, `INSERT INTO ${schema}.notes VALUES ('late')`),
      ).rejects.toThrow();
    });
    await expect(run).rejects.toThrow("no transactions here");
    expect(await notes()).not.toContain("late");
  });

  test("rejects with the error of a COMMIT that was refused, and keeps the client", async () => {
    const pool = connect();
    const pid = async () => (await pool.query("SELECT pg_backend_pid() AS pid")).rows;
    const before = await pid();
    const run = fromPg(pool).run(async (client) => {
      await client.query(
        `CREATE TABLE ${schema}.unique_notes (note text UNIQUE DEFERRABLE INITIALLY DEFERRED)`,
      );
      await client.query(`INSERT INTO ${schema}.unique_notes VALUES ('same'), ('same')`);
    });
    await expect(run).rejects.toMatchObject({ code: "23505" });
    expect(await pid()).toEqual(before);
  });

  test("takes no statement after the end, whether it was committed or rolled back", async () => {
    const database = fromPg(connect());
    for (const fails of [false, true]) {
      let kept: PoolClient | undefined;
      const run = database.run(async (client) => {
        kept = client;
        await client.query("SELECT 1");
        if (fails) throw new Error("no");
      });
      // oxlint-disable-next-line no-await-in-loop -- one transaction after the other
      await run.catch(() => {});
      await expect(kept?.query(insert, ["late"])).rejects.toThrow(/transaction is closed/);
      const told = new Promise((resolve) => kept?.query(insert, ["late"], resolve));
      expect(await told).toMatchObject({ message: expect.stringMatching(/transaction is closed/) });
      // oxlint-disable-next-line no-await-in-loop -- as above
      await expect(database.query(kept as PoolClient, insert, ["late"])).rejects.toThrow(/has ended/);
      // oxlint-disable-next-line no-await-in-loop -- as above
      await expect(database.script?.(kept as PoolClient, "SELECT 1")).rejects.toThrow(/has ended/);
    }
    expect(await notes()).not.toContain("late");
  });

  test("keeps the client when its handler would release it", async () => {
    const pool = connect();
    await fromPg(pool).run(async (client) => {
      await client.query("SELECT 1");
      expect(() => client.release()).toThrow(/do not release it/);
    });
    expect(pool.idleCount).toBe(1);
  });
});

describe("a pool that gives no client", () => {
  test("rejects with its error", async () => {
    const dead = connect({ connectionString: "postgres://user@127.0.0.1:1/none" });
    await expect(fromPg(dead).run(() => Promise.resolve())).rejects.toMatchObject({ code: "ECONNREFUSED" });
  });
});
