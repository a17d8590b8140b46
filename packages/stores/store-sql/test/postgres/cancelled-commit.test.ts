import { fromPg } from "@countersign/store-sql/pg";
import { idempotencyKeys } from "@countersign/idempotency";
import { createStores } from "@countersign/store-sql";
import { afterTest } from "@countersign/test-support/runs/after-test.ts";
import { eventually } from "@countersign/test-support/runs/eventually.ts";
import { expectWarning } from "@countersign/test-support/runs/expect-warning.ts";
import { postgresUrl } from "@countersign/test-support/servers/engines.ts";
import { afterAll, beforeEach, describe, expect, jest, test } from "@jest/globals";
import { Client, type Pool, type PoolClient, type PoolConfig } from "pg";
import type { PostgresQueryable } from "../../dist/postgres/queryable.js";
import { connectPool, openStores, newStores } from "./connections.ts";
import { claimOf, keyOf, pastGate, payIn } from "./payouts.ts";
import { type StandbyServer, startStandbyServer } from "./waiting-commits.ts";

const server = postgresUrl === undefined ? undefined : await startStandbyServer();
const onServer = server === undefined ? describe.skip : describe;
const standby = server as StandbyServer;
const config = { connectionString: server?.url };
const quiet = { ...config, options: "-c client_min_messages=error" };

const claim = { token: "a", fingerprint: "f", leaseMs: 60_000, recovery: "hold" } as const;
const unconfirmed = { code: "08007" };

afterAll(() => server?.close());

async function connectOne(settings: PoolConfig): Promise<Client> {
  const client = new Client(settings);
  client.on("error", () => {});
  await client.connect();
  afterTest(() => client.end());
  return client;
}

/** Cancels the first wait of the step, where a second one has to follow. */
async function twice(step: Promise<unknown>): Promise<unknown> {
  const settled = step.catch((error: unknown) => error);
  await standby.terminate(await standby.nextWait(await standby.cancelWait()));
  return settled;
}

async function once(step: Promise<unknown>): Promise<unknown> {
  const settled = step.catch((error: unknown) => error);
  await standby.cancelWait();
  return settled;
}

onServer("a step of lease mode whose commit is cancelled while it waits for a standby", () => {
  let pool: Pool;
  let schema: string;

  beforeEach(async () => {
    // First in, last out: the schema is emptied by commits.
    ({ pool, schema } = await newStores({}, config));
    await standby.loseStandby();
    afterTest(() => standby.leaveStandby());
  });

  type Cancel = (step: Promise<unknown>) => Promise<unknown>;
  const onlyQueries = (on: PostgresQueryable): PostgresQueryable => ({
    query: (text, values) => on.query(text, values),
  });
  /** A pool whose clients pass no warnings on. */
  const withoutNotices = (): Pick<Pool, "connect" | "totalCount"> & PostgresQueryable => ({
    totalCount: 0,
    query: (text, values) => pool.query(text, values),
    async connect() {
      const client: PoolClient = await pool.connect();
      client.on("error", () => {});
      const release = (destroy?: boolean | Error) => client.release(destroy);
      return { query: client.query.bind(client), release } as PoolClient;
    },
  });

  test.each<[string, () => Promise<PostgresQueryable>, Cancel]>([
    ["a pool of pg", async () => pool, once],
    ["a client of pg", () => connectOne(config), once],
    ["a pool whose sessions take no warnings", async () => connectPool(quiet), once],
    ["an object that only takes queries", async () => onlyQueries(pool), twice],
    ["a pool of clients without events", async () => withoutNotices(), twice],
  ])("rejects as an unknown outcome on %s", async (_case, connect, cancelled) => {
    const { idempotency, nonces } = openStores(await connect(), { schema });
    expect(await cancelled(idempotency.claim("k", claim))).toMatchObject(unconfirmed);
    const use = { scope: "s", nonce: "n", token: "a", retainMs: 60_000 };
    expect(await cancelled(nonces.claim(use))).toMatchObject(unconfirmed);
    expect(await cancelled(idempotency.complete("k", "a"))).toMatchObject(unconfirmed);
    // What the row says is no proof.
    expect(await cancelled(idempotency.complete("k", "a"))).toMatchObject(unconfirmed);
    expect(await cancelled(Promise.resolve(idempotency.read("k")))).toMatchObject(unconfirmed);
    const completed = idempotency.complete("k", "a");
    await standby.leaveStandby();
    expect(await completed).toBe("ok");
  });

  test("rejects also where the standby came behind the check of the server", async () => {
    await standby.leaveStandby();
    const { idempotency } = openStores(pool, { schema, prepare: true });
    await idempotency.claim("k", claim);
    await standby.loseStandby();
    expect(await once(idempotency.complete("k", "a"))).toMatchObject(unconfirmed);
  });

  test("commits once more within a minute of the setting", async () => {
    await standby.leaveStandby();
    const { idempotency } = openStores(onlyQueries(pool), { schema });
    await idempotency.claim("k", claim);
    await standby.loseStandby();
    const now = performance.now.bind(performance);
    const clock = jest.spyOn(performance, "now").mockImplementation(() => now() + 60_000);
    afterTest(() => clock.mockRestore());
    expect(await twice(idempotency.complete("k", "a"))).toMatchObject(unconfirmed);
  });

  test("waits for nobody where the session's commits do not", async () => {
    const { idempotency } = openStores(connectPool({ ...config, options: "-c synchronous_commit=local" }), {
      schema,
    });
    await idempotency.claim("k", claim);
    expect(await idempotency.complete("k", "a")).toBe("ok");
    expect(await idempotency.read("k")).toMatchObject({ state: "done" });
  });

  test("leaves the key in doubt: the caller has to come again", async () => {
    await standby.leaveStandby();
    const { idempotency } = openStores(pool, { schema });
    let isSettled = false;
    const onSettled = () => void (isSettled = true);
    const keys = idempotencyKeys({ factory: "test", store: idempotency, recovery: "hold", onSettled });
    const owned = await keys.acquire({ key: "k", token: "a", fingerprint: "f" });
    if (owned.status !== "acquired") throw new Error(owned.status);
    await standby.loseStandby();
    expectWarning(/^\[completion-delayed\] CountersignWarning: test: key "k" ended with success, but/);
    const completed = owned.complete();
    await standby.cancelWait();
    // The look whether it is done all the same.
    await standby.cancelWait();
    expect(await completed).toMatchObject({ status: 503 });
    expect(isSettled).toBe(false);
    await standby.leaveStandby();
    await eventually(() => isSettled);
  });

  test("leaves one listener on a connection, and the app's own warnings to it", async () => {
    const heard: unknown[] = [];
    const client = await connectOne(config);
    client.on("notice", (notice) => heard.push(notice.routine));
    const { idempotency } = openStores(client, { schema });
    await once(idempotency.claim("k", claim));
    for (let step = 0; step < 3; step += 1) await once(idempotency.heartbeat("k", "a", 60_000));
    expect(heard).toEqual(Array.from({ length: 4 }, () => "SyncRepWaitForLSN"));
    expect(client.listenerCount("notice")).toBe(2);
  });
});

onServer("a transaction whose commit is cancelled while it waits for a standby", () => {
  test("rejects as an unknown outcome in sessions that take no warnings", async () => {
    const { schema } = await newStores({}, config);
    await standby.loseStandby();
    afterTest(() => standby.leaveStandby());
    const { transactions, close } = createStores({
      schema,
      database: fromPg(connectPool(quiet)),
      pruneIntervalMs: 0,
    });
    afterTest(close);
    const paying = payIn(transactions, claimOf([keyOf("k")]), () => Promise.resolve());
    expect(await once(paying)).toMatchObject(unconfirmed);
  });

  test("rejects as an unknown outcome where nothing was begun, in sessions that take no warnings", async () => {
    const { pool, schema } = await newStores({}, config);
    await pool.query(`CREATE TABLE ${schema}.payments (key text)`);
    afterTest(() => pool.query(`DROP TABLE ${schema}.payments`));
    await standby.loseStandby();
    afterTest(() => standby.leaveStandby());
    const database = fromPg(connectPool(quiet));
    const { transactions, close } = createStores({ schema, database, pruneIntervalMs: 0 });
    afterTest(close);
    const writing = transactions.run((tx) => tx.query(`INSERT INTO ${schema}.payments VALUES ('k')`));
    expect(await once(writing)).toMatchObject(unconfirmed);
  });

  const silent = { tellsRollback: undefined };
  const hiding = { tellsUnconfirmed: undefined };

  test.each([
    ["hides a ROLLBACK", silent],
    ["hides warnings", hiding],
    ["hides both", { ...silent, ...hiding }],
  ])("is not confirmed behind a late ROLLBACK by a library that %s", async (_case, hidden) => {
    const { schema } = await newStores({}, config);
    await standby.loseStandby();
    afterTest(() => standby.leaveStandby());
    // Of sessions that do not wait themselves.
    const database = fromPg(connectPool({ ...config, options: "-c synchronous_commit=local" }));
    const { transactions, close } = createStores({
      schema,
      database: { ...database, ...hidden },
      pruneIntervalMs: 0,
    });
    afterTest(close);
    const payThen = (late: (tx: PoolClient) => Promise<unknown>) => {
      const keys = [keyOf("k")];
      return transactions.run(async (tx) => {
        const begun = await transactions.begin(tx, claimOf(keys));
        if (begun.keys[0]?.status === "begun") await transactions.keep(tx, keys, false);
        await late(tx);
        return begun.keys;
      });
    };
    await expect(payThen((tx) => pastGate(tx, "ROLLBACK"))).rejects.toMatchObject({
      code: "transaction-broken",
    });
    expect(await payThen(() => Promise.resolve())).toEqual([{ status: "begun" }]);
    expect(await payThen(() => Promise.resolve())).toMatchObject([{ status: "done" }]);
  });

  test("is not answered as paid to a duplicate, which writes nothing itself", async () => {
    const { schema } = await newStores({}, config);
    await standby.loseStandby();
    afterTest(() => standby.leaveStandby());
    const database = fromPg(connectPool(config));
    const { transactions, close } = createStores({ schema, database, pruneIntervalMs: 0 });
    afterTest(close);
    const pay = () => payIn(transactions, claimOf([keyOf("k")]), () => Promise.resolve());
    expect(await once(pay())).toMatchObject(unconfirmed);
    expect(await once(pay())).toMatchObject(unconfirmed);
    const duplicate = pay();
    await standby.leaveStandby();
    expect((await duplicate).keys).toMatchObject([{ status: "done" }]);
  });

  test("is not answered as paid to a duplicate within a minute of the setting", async () => {
    const { schema } = await newStores({}, config);
    const database = fromPg(connectPool(config));
    const { transactions, close } = createStores({ schema, database, pruneIntervalMs: 0 });
    afterTest(close);
    const pay = () => payIn(transactions, claimOf([keyOf("k")]), () => Promise.resolve());
    await pay();
    await standby.loseStandby();
    afterTest(() => standby.leaveStandby());
    let isAnswered = false;
    const duplicate = pay().finally(() => (isAnswered = true));
    await eventually(async () => (await standby.waiting()) === 1);
    expect(isAnswered).toBe(false);
    await standby.leaveStandby();
    expect((await duplicate).keys).toMatchObject([{ status: "done" }]);
  });

  test("rejects as an unknown outcome where the handler takes no warnings any more", async () => {
    const { schema } = await newStores({}, config);
    const database = fromPg(connectPool(config));
    const { transactions, close } = createStores({ schema, database, pruneIntervalMs: 0 });
    afterTest(close);
    await standby.loseStandby();
    afterTest(() => standby.leaveStandby());
    const handler = (tx: PoolClient) => tx.query("SET LOCAL client_min_messages = error");
    expect(await once(payIn(transactions, claimOf([keyOf("k")]), handler))).toMatchObject(unconfirmed);
  });

  test("rejects as an unknown outcome for a task, in sessions that take no warnings", async () => {
    const { schema } = await newStores({}, config);
    const database = fromPg(connectPool(quiet));
    const { transactions, work, close } = createStores({ schema, database, pruneIntervalMs: 0 });
    afterTest(close);
    await transactions.run((tx) => work.add(tx, "q", [{ id: "1", body: "" }]));
    await standby.loseStandby();
    afterTest(() => standby.leaveStandby());
    const claimed = work.claim({ queue: "q", limit: 1, token: "t", leaseMs: 60_000 });
    expect(await once(claimed)).toMatchObject(unconfirmed);
  });
});
