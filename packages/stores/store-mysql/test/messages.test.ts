import { fromMysql2 } from "@countersign/databases";
import { expect, test } from "@jest/globals";
import type { PoolConnection, RowDataPacket } from "mysql2/promise";
import { describeOnMysql } from "@countersign/test-support/servers/engines.ts";
import type { IdempotencyClaim } from "@countersign/idempotency";
import { testClock } from "@countersign/test-support/runs/after-test.ts";
import { connectPool, createStores, createTables, newStores } from "./connections.ts";
import { claimOf, newKey, newNonce, pay } from "./transactions.ts";

const bytes = /x'[0-9a-f]*'/gi;
const counted = "SHOW SESSION STATUS LIKE 'Questions'";

/** Stores on one connection, and what it has sent and the server has got since the last look. */
async function recorded(setting = "autocommit = 1") {
  const table = await createTables(connectPool());
  const pool = connectPool({ connectionLimit: 1 });
  const sent: string[] = [];
  pool.on("connection", (connection) => {
    void connection.query(`SET ${setting}`);
    const query = connection.query.bind(connection) as (...values: unknown[]) => never;
    Object.assign(connection, {
      query: (...values: unknown[]) => {
        sent.push(String(Object(values[0]).sql ?? values[0]).replaceAll(bytes, "'…'"));
        return query(...values);
      },
    });
  });
  const { transactions } = createStores(pool, { table, database: fromMysql2(pool) });
  await transactions.run(() => Promise.resolve());
  let before = 0;
  const questions = async (): Promise<number> => {
    const [[row]] = await pool.query<RowDataPacket[]>(counted);
    const all = Number(row?.["Value"]);
    const since = all - before - 1;
    before = all;
    return since;
  };
  await questions();
  const insert = async (tx: PoolConnection, id: string) =>
    tx.query(`INSERT INTO ${table}_payouts VALUES (?)`, [id]);
  const messages = async () => {
    const texts = sent.filter((text) => text !== counted).splice(0);
    sent.length = 0;
    // The server's count of what came from this connection: no message is hidden from the first.
    expect(await questions()).toBe(texts.length);
    sent.length = 0;
    return texts;
  };
  sent.length = 0;
  return { transactions, insert, messages };
}

const begin = expect.stringMatching(
  /^BEGIN NOT ATOMIC\nSTART TRANSACTION;\nSET @countersign_[^;]*;\n(?:SET STATEMENT [^;]*_nonces`[^;]*;\nIF [^;]* THEN\n)?INSERT INTO [^;]*_idempotency`[^;]*;\nSELECT [^;]* FOR UPDATE;\nSAVEPOINT countersign;\n(?:END IF;\n)?END$/,
);
const insertion = expect.stringContaining("_payouts VALUES (?)");
const mark = expect.stringMatching(
  /^BEGIN NOT ATOMIC\nRELEASE SAVEPOINT countersign;\nUPDATE [^;]*_idempotency`[^;]* state = 'done'[^;]*;\nSELECT state AS kept_as[^;]*;\nSAVEPOINT countersign;\nEND$/,
);
const commit = expect.stringMatching(
  /^BEGIN NOT ATOMIC\nRELEASE SAVEPOINT countersign;\nSET SESSION [^;]*autocommit = @countersign_autocommit;\nEND$/,
);

/** Behind a failure. */
const probe = "BEGIN NOT ATOMIC\nRELEASE SAVEPOINT countersign;\nSAVEPOINT countersign;\nEND";

// It says as well whether a table without transactions has kept rows.
const rollback = expect.stringMatching(
  /^BEGIN NOT ATOMIC\nROLLBACK;\nIF @@warning_count [^\n]*END IF;\nSELECT [^;]* AS rows_left;\nEND$/,
);
const givenBack = expect.stringMatching(/^SET SESSION [^;]*autocommit = @countersign_autocommit$/);

describeOnMysql("a payment with mysql2", () => {
  test("with two statements takes five messages, with one four", async () => {
    const { transactions, insert, messages } = await recorded();
    await pay(transactions, claimOf([newKey("k")], { nonce: newNonce("n") }), async (tx) => {
      await insert(tx, "one");
      await insert(tx, "two");
    });
    expect(await messages()).toEqual([begin, insertion, insertion, mark, commit]);
    await pay(transactions, claimOf([newKey("l")], { nonce: newNonce("m") }), (tx) => insert(tx, "three"));
    expect(await messages()).toEqual([begin, insertion, mark, commit]);
  });

  test("that is refused takes four", async () => {
    const { transactions, messages } = await recorded();
    const refuse = () => Promise.reject(new Error("refused"));
    const refused = pay(transactions, claimOf([newKey("k")], { nonce: newNonce("n") }), refuse);
    await expect(refused).rejects.toThrow("refused");
    expect(await messages()).toEqual([begin, probe, rollback, givenBack]);
  });

  test("that was made already, or whose nonce was used, takes two", async () => {
    const { transactions, messages } = await recorded();
    await pay(transactions, claimOf([newKey("k")], { nonce: newNonce("n") }));
    await messages();
    await pay(transactions, claimOf([newKey("k")], { nonce: newNonce("m") }));
    expect(await messages()).toEqual([begin, commit]);
    const replay = transactions.run(async (tx) => {
      const { nonce } = await transactions.begin(tx, claimOf([newKey("other")], { nonce: newNonce("n") }));
      throw new Error(nonce);
    });
    await expect(replay).rejects.toThrow("seen");
    expect(await messages()).toEqual([
      begin,
      expect.stringMatching(/^BEGIN NOT ATOMIC\nROLLBACK;\nSET SESSION [^;]*;[^]*\nEND$/),
    ]);
  });

  test("among others in one transaction takes one more than its own statements", async () => {
    const { transactions, insert, messages } = await recorded();
    const keys = ["a", "b", "c"].map(newKey);
    await pay(transactions, claimOf(keys), async (tx, { key }) => {
      if (key !== "b") await insert(tx, key);
    });
    expect(await messages()).toEqual([begin, insertion, mark, mark, insertion, mark, commit]);
  });

  test("on a session without autocommit ends with the library's COMMIT", async () => {
    const { transactions, insert, messages } = await recorded("autocommit = 0");
    await pay(transactions, claimOf([newKey("k")]), (tx) => insert(tx, "one"));
    expect(await messages()).toEqual([begin, insertion, mark, commit, "COMMIT"]);
  });
});

describeOnMysql("a step of lease mode", () => {
  const first: IdempotencyClaim = { token: "a", fingerprint: "f", leaseMs: 1_000, recovery: "rerun" };
  const second = { ...first, token: "b" };
  type Step = (
    store: Awaited<ReturnType<typeof newStores>>["idempotency"],
    fence: number,
  ) => Promise<unknown>;

  test.each<[string, number, Step]>([
    ["a claim of a new key", 2, (store) => store.claim("new", first)],
    ["a duplicate", 1, (store) => store.claim("k", second)],
    // The second look is at a row that is locked.
    ["a duplicate of a done key", 2, (store) => store.claim("done", second)],
    ["a takeover", 2, (store) => store.claim("expired", second)],
    ["a heartbeat", 1, (store) => store.heartbeat("k", "a", 1_000)],
    ["a completion", 1, (store) => store.complete("k", "a")],
    ["a release", 2, (store) => store.release("k", "a")],
    ["a hold", 2, (store) => store.hold("k", "a", "why")],
    ["an operator's decision", 2, (store, fence) => store.resolve("expired", "done", { fence })],
    ["a heartbeat of a lost key", 1, (store) => store.heartbeat("k", "b", 1_000)],
  ])("takes for %s %i messages", async (_step, messages, step) => {
    const clock = testClock();
    const { idempotency, pool, table } = await newStores({ now: clock.now });
    const expired = await idempotency.claim("expired", first);
    await idempotency.claim("done", first);
    await idempotency.complete("done", "a");
    clock.advance(1_000);
    await idempotency.claim("k", first);
    let sent = 0;
    const counting = fromMysql2({
      getConnection: () => pool.getConnection(),
      query: (text: string, values?: unknown[]) => {
        sent += 1;
        return pool.query(text, values);
      },
    });
    const stores = createStores(pool, { table, now: clock.now, database: counting });
    await stores.ready();
    sent = 0;
    await step(stores.idempotency, expired.status === "acquired" ? expired.fence : 0);
    expect(sent).toBe(messages);
  });
});
