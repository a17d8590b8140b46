import { once } from "node:events";
import { createServer, type AddressInfo } from "node:net";
import type { PostgresPoolClient } from "../../dist/postgres/queryable.js";
import { withPostgresTransaction } from "@countersign/store-sql";
import { afterEach, describe, expect, jest, test } from "@jest/globals";
import type { PoolClient, QueryConfig } from "pg";
import { describeOnPostgres } from "@countersign/test-support/servers/engines.ts";
import { afterTest, pause } from "@countersign/test-support/runs/after-test.ts";
import { connectPool, createSchema, openStores } from "./connections.ts";

describeOnPostgres("withPostgresTransaction()", () => {
  async function setUp() {
    const pool = connectPool({ max: 1 });
    const schema = await createSchema(pool);
    await pool.query(`CREATE TABLE ${schema}.payouts (id int PRIMARY KEY)`);
    const insert = `INSERT INTO ${schema}.payouts VALUES (1)`;
    const count = async () => (await pool.query(`SELECT FROM ${schema}.payouts`)).rowCount;
    const pid = async () => (await pool.query("SELECT pg_backend_pid() AS pid")).rows[0].pid as number;
    return { pool, insert, count, pid };
  }

  test("commits, gives the result and returns the client", async () => {
    const { pool, insert, count, pid } = await setUp();
    const before = await pid();
    const result = await withPostgresTransaction(pool, async (client) => {
      const { rowCount } = await client.query(insert);
      return rowCount;
    });
    expect(result).toBe(1);
    expect(await count()).toBe(1);
    expect(await pid()).toBe(before);
  });

  test("rolls back when the work rejects, rejects with the same and returns the client", async () => {
    const { pool, insert, count, pid } = await setUp();
    const before = await pid();
    const reason = new Error("no such account");
    const attempt = withPostgresTransaction(pool, async (client) => {
      await client.query(insert);
      throw reason;
    });
    await expect(attempt).rejects.toBe(reason);
    expect(await count()).toBe(0);
    expect(await pid()).toBe(before);
  });

  test("rejects when the work swallowed the error of a statement, because COMMIT then rolls back", async () => {
    const { pool, insert, count } = await setUp();
    const attempt = withPostgresTransaction(pool, async (client) => {
      await client.query(insert);
      await client.query("SELECT 1 / 0").catch(() => {});
    });
    await expect(attempt).rejects.toThrow(/was rolled back, because a statement in it had failed/);
    expect(await count()).toBe(0);
  });

  const ended = {
    message: expect.stringMatching(
      /^withPostgresTransaction: the server has ended the session .* \(option idleTimeoutMs\)$/,
    ),
    cause: expect.objectContaining({ code: "25P03" }),
  };

  test.each<[string, (client: PoolClient) => Promise<unknown>]>([
    ["the next statement", (client) => client.query("SELECT 1")],
    ["COMMIT", () => Promise.resolve()],
  ])("survives that the server ends an idle session: %s rejects and says why", async (_case, next) => {
    const { pool, insert, count } = await setUp();
    const work = async (client: PoolClient) => {
      await client.query(insert);
      await pause(400);
      await next(client);
    };
    const attempt = withPostgresTransaction(pool, work, { idleTimeoutMs: 100 });
    await expect(attempt).rejects.toMatchObject(ended);
    expect(await count()).toBe(0);
  });

  test("lets the driver answer a statement with a callback when the session has ended", async () => {
    const { pool } = await setUp();
    let answer: unknown;
    const work = async (client: PoolClient) => {
      await pause(400);
      answer = await new Promise((resolve) => client.query("SELECT 1", resolve));
      throw new Error("seen");
    };
    await expect(withPostgresTransaction(pool, work, { idleTimeoutMs: 100 })).rejects.toThrow("seen");
    expect(answer).toBeInstanceOf(Error);
  });

  test.each<[string, number | undefined, string]>([
    ["a minute", undefined, "1min"],
    ["its option", 2_500, "2500ms"],
  ])("bounds how long the transaction stands idle by %s, and leaves no trace", async (_case, ms, shown) => {
    const { pool } = await setUp();
    const show = (on: Pick<PoolClient, "query">) => on.query("SHOW idle_in_transaction_session_timeout");
    const before = (await show(pool)).rows;
    const { rows } = await withPostgresTransaction(pool, show, { idleTimeoutMs: ms });
    expect(rows).toEqual([{ idle_in_transaction_session_timeout: shown }]);
    expect((await show(pool)).rows).toEqual(before);
  });

  test("leaves other errors of statements as they are", async () => {
    const { pool } = await setUp();
    const missing = withPostgresTransaction(pool, (client) => client.query("SELECT FROM nowhere.nothing"));
    await expect(missing).rejects.toMatchObject({ code: "42P01" });
  });

  test("leaves no listener on a client that goes back to the pool", async () => {
    const { pool } = await setUp();
    const client = await pool.connect();
    const before = client.listenerCount("error");
    client.release();
    for (let index = 0; index < 3; index++) await withPostgresTransaction(pool, () => Promise.resolve());
    const again = await pool.connect();
    expect(again).toBe(client);
    expect(again.listenerCount("error")).toBe(before);
    again.release();
  });

  test("lets the work begin with what only the start of a transaction takes", async () => {
    const { pool } = await setUp();
    const isolation = await withPostgresTransaction(pool, async (client) => {
      await client.query("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE");
      return (await client.query("SHOW transaction_isolation")).rows;
    });
    expect(isolation).toEqual([{ transaction_isolation: "serializable" }]);
  });

  test.each([
    ["commits", () => Promise.resolve()],
    ["rolls back", () => Promise.reject(new Error("no such account"))],
  ])("leaves no setting on the connection when it %s", async (_case, work) => {
    const { pool } = await setUp();
    const settings = async () =>
      (await pool.query("SELECT current_setting('countersign.transaction', true) AS open")).rows;
    await withPostgresTransaction(pool, work).catch(() => {});
    expect(await settings()).toEqual([{ open: "" }]);
  });

  test("begins on a driver that sends single statements only", async () => {
    const { pool, insert, count } = await setUp();
    const connect = async (): Promise<PostgresPoolClient> => {
      const client = await pool.connect();
      return {
        query: (text, values) => client.query({ text, values, queryMode: "extended" } as QueryConfig),
        release: (destroy) => client.release(destroy),
      };
    };
    const commit = withPostgresTransaction({ connect }, (client) => client.query(insert));
    expect(await commit).toMatchObject({ rowCount: 1 });
    const rollBack = withPostgresTransaction({ connect }, async (client) => {
      await client.query(insert.replace("(1)", "(2)"));
      await client.query("UPDATE pg_temp.nothing SET id = 1");
    });
    await expect(rollBack).rejects.toMatchObject({ code: "42P01" });
    expect(await count()).toBe(1);
  });

  test.each([
    ["commits", () => Promise.resolve()],
    ["rolls back", () => Promise.reject(new Error("no such account"))],
  ])("takes no statement of work that goes on when it %s", async (_case, settle) => {
    const { pool, insert, count } = await setUp();
    let late: (() => Promise<unknown>) | undefined;
    const attempt = withPostgresTransaction(pool, async (client) => {
      const { query } = client;
      late = async () => query(insert);
      await settle();
    });
    await attempt.catch(() => {});
    await expect(late?.()).rejects.toThrow(/the transaction has ended/);
    expect(await count()).toBe(0);
  });

  test("gives the work all else of the client as it is", async () => {
    const { pool } = await setUp();
    const direct = await pool.connect();
    direct.release();
    await withPostgresTransaction(pool, async (client) => {
      expect(client).toBeInstanceOf(direct.constructor);
      const notices: unknown[] = [];
      const listener = (notice: unknown) => void notices.push(notice);
      client.on("notice", listener);
      await client.query("DO $$ BEGIN RAISE NOTICE 'seen'; END $$");
      client.removeListener("notice", listener);
      expect(notices).toHaveLength(1);
      expect(direct.listeners("notice")).toEqual([]);
    });
  });

  test("destroys the client when the connection breaks, and the pool goes on with a new one", async () => {
    const { pool, insert, count, pid } = await setUp();
    const killer = connectPool();
    const before = await pid();
    const attempt = withPostgresTransaction(pool, async (client) => {
      await client.query(insert);
      await killer.query("SELECT pg_terminate_backend($1)", [before]);
      await client.query("SELECT 1");
    });
    await expect(attempt).rejects.toThrow();
    expect(await count()).toBe(0);
    expect(await pid()).not.toBe(before);
  });
});

type Answer = () => Promise<{ rows: never[]; command?: string }>;

function fakePool(answers: Readonly<Record<string, Answer>>) {
  const released: unknown[] = [];
  const client: PostgresPoolClient = {
    query: (text) => (answers[text.split(";", 1).join()] ?? (() => Promise.resolve({ rows: [] })))(),
    release: (destroy) => void released.push(destroy),
  };
  return { pool: { connect: () => Promise.resolve(client) }, released };
}

test("withPostgresTransaction() rejects with the error of COMMIT and destroys the client", async () => {
  const { pool, released } = fakePool({ COMMIT: () => Promise.reject(new Error("connection lost")) });
  await expect(withPostgresTransaction(pool, () => Promise.resolve(1))).rejects.toThrow("connection lost");
  expect(released).toEqual([true]);
});

describe("withPostgresTransaction() says that nothing has begun", () => {
  const work = jest.fn(() => Promise.resolve(1));
  const notBegun = (cause: unknown): object => ({
    status: 503,
    code: "transaction-not-begun",
    headers: { "Retry-After": "5" },
    cause,
  });

  test("when BEGIN fails, and gives the client back", async () => {
    const starting = new Error("the server is starting up");
    const { pool, released } = fakePool({ BEGIN: () => Promise.reject(starting) });
    await expect(withPostgresTransaction(pool, work)).rejects.toMatchObject(notBegun(starting));
    expect(released).toEqual([undefined]);
  });

  test("when the pool gives no connection", async () => {
    const late = new Error("timeout exceeded when trying to connect");
    const pool = { connect: (): Promise<PostgresPoolClient> => Promise.reject(late) };
    await expect(withPostgresTransaction(pool, work)).rejects.toMatchObject(notBegun(late));
  });

  test("but not of a programmer's mistake", async () => {
    await expect(withPostgresTransaction({} as never, work)).rejects.toThrow(TypeError);
  });

  afterEach(() => expect(work).not.toHaveBeenCalled());
});

test.each([
  ["42601", ["BEGIN; SET", "BEGIN", "SET", "COMMIT"]],
  ["57P03", ["BEGIN; SET", "ROLLBACK"]],
])(
  "withPostgresTransaction() begins again after the error %s only where nothing can have begun",
  async (code, expected) => {
    const sent: string[] = [];
    const client: PostgresPoolClient = {
      query(text) {
        sent.push(text.split(" LOCAL", 1).join());
        const isRefused = text.includes(";");
        return isRefused
          ? Promise.reject(Object.assign(new Error(code), { code }))
          : Promise.resolve({ rows: [] });
      },
      release() {},
    };
    const pool = { connect: () => Promise.resolve(client) };
    await withPostgresTransaction(pool, () => Promise.resolve()).catch(() => {});
    expect(sent).toEqual(expected);
  },
);

test.each<[string, unknown, RegExp]>([
  ["a bound of 0, which would be none", { idleTimeoutMs: 0 }, /option idleTimeoutMs/],
  ["a bound below a tenth of a second", { idleTimeoutMs: 99 }, /option idleTimeoutMs/],
  ["a bound above an hour", { idleTimeoutMs: 3_600_001 }, /option idleTimeoutMs/],
  ["a bound that is text", { idleTimeoutMs: "1min" }, /option idleTimeoutMs/],
  ["an option that it does not have", { idleTimeout: 1_000 }, /unknown option idleTimeout/],
  ["a number", 60_000, /options must be an object/],
])("withPostgresTransaction() refuses %s, before it takes a client", async (_case, options, message) => {
  const connect = jest.fn<() => Promise<PostgresPoolClient>>();
  const attempt = withPostgresTransaction({ connect }, () => Promise.resolve(), options as object);
  await expect(attempt).rejects.toThrow(TypeError);
  await expect(attempt).rejects.toThrow(message);
  expect(connect).not.toHaveBeenCalled();
});

test("withPostgresTransaction() destroys a client whose ROLLBACK is refused", async () => {
  const { pool, released } = fakePool({ ROLLBACK: () => Promise.reject(new Error("gone")) });
  const attempt = withPostgresTransaction(pool, () => Promise.reject(new Error("no such account")));
  await expect(attempt).rejects.toThrow("no such account");
  expect(released).toEqual([true]);
});

test("withPostgresTransaction() does not wait for ever for a ROLLBACK, as behind a statement that hangs", async () => {
  jest.useFakeTimers();
  try {
    const { pool, released } = fakePool({ ROLLBACK: () => new Promise(() => {}) });
    const attempt = withPostgresTransaction(pool, () =>
      Promise.reject(new Error("the store did not answer")),
    );
    const settled = expect(attempt).rejects.toThrow("the store did not answer");
    await jest.advanceTimersByTimeAsync(5_000);
    await settled;
    expect(released).toEqual([true]);
  } finally {
    jest.useRealTimers();
  }
});

test("withPostgresTransaction() gives the work the methods of a client that keeps its state private", async () => {
  class Client implements PostgresPoolClient {
    readonly #sent: string[] = [];
    query(text: string) {
      this.#sent.push(text.split(";", 1).join());
      return Promise.resolve({ rows: [] });
    }
    sent() {
      return this.#sent;
    }
    release() {}
  }
  const pool = { connect: () => Promise.resolve(new Client()) };
  const sent = await withPostgresTransaction(pool, (client) => Promise.resolve(client.sent()));
  expect(sent).toEqual(["BEGIN", "COMMIT"]);
});

describe("a backend that ends in the packet that says it is ready", () => {
  const message = (type: string, ...parts: (string | Buffer)[]): Buffer => {
    const body = Buffer.concat(parts.map((part) => Buffer.from(part)));
    const head = Buffer.from(`${type}\0\0\0\0`);
    head.writeUInt32BE(4 + body.length, 1);
    return Buffer.concat([head, body]);
  };
  const packet = Buffer.concat([
    message("R", "\0\0\0\0"), // AuthenticationOk
    message("Z", "I"), // ReadyForQuery
    message("E", "SFATAL\0VFATAL\0C57P01\0Mterminating connection due to administrator command\0\0"),
  ]);

  async function setUp() {
    const server = createServer((socket) => {
      socket.on("error", () => {});
      socket.once("data", () => socket.end(packet));
    });
    await once(server.listen(0, "127.0.0.1"), "listening");
    afterTest(() => server.close());
    const { port } = server.address() as AddressInfo;
    const pool = connectPool({ connectionString: undefined, host: "127.0.0.1", port, user: "a", max: 1 });
    // Where nobody listens, an error event of the client ends the process.
    const uncaught: unknown[] = [];
    pool.on("connect", (client) => {
      const emit = client.emit.bind(client);
      client.emit = (...event: Parameters<typeof emit>) => {
        if (event[0] === "error" && client.listenerCount("error") === 0) return !uncaught.push(event[1]);
        return emit(...event);
      };
    });
    return { pool, uncaught };
  }

  test("rejects the transaction, and does not end the process", async () => {
    const { pool, uncaught } = await setUp();
    const work = jest.fn(() => Promise.resolve(1));
    const attempt = withPostgresTransaction(pool, work);
    await expect(attempt).rejects.toMatchObject({ status: 503, code: "transaction-not-begun" });
    expect(work).not.toHaveBeenCalled();
    expect(uncaught).toEqual([]);
  });

  test("rejects a step of a store, and does not end the process", async () => {
    const { pool, uncaught } = await setUp();
    const stores = openStores(pool, {});
    await expect(stores.idempotency.read("a")).rejects.toThrow();
    expect(uncaught).toEqual([]);
  });
});
