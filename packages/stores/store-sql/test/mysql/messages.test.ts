import { fromMysql2 } from "@countersign/store-sql/mysql2";
import { expect, test } from "@jest/globals";
import type { PoolConnection, RowDataPacket } from "mysql2/promise";
import { describeOnMysql, mysqlEngine } from "@countersign/test-support/servers/engines.ts";
import type { IdempotencyClaim } from "@countersign/idempotency";
import { testClock } from "@countersign/test-support/runs/after-test.ts";
import { connectPool, openStores, createTables, newStores } from "./connections.ts";
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
  const { transactions } = openStores(pool, { table, database: fromMysql2(pool) });
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

const isOnMysql = mysqlEngine === "mysql";
const begin = expect.stringMatching(
  /^BEGIN NOT ATOMIC\nSTART TRANSACTION;\nSET @countersign_[^;]*;\n(?:INSERT INTO [^;]*_nonces`[^;]*;\nSET @countersign_own_nonce[^;]*;\nSELECT [^;]*;\nIF [^;]* THEN\n)?INSERT INTO [^;]*_idempotency`[^;]*;\nSELECT [^;]* FOR UPDATE;\nSAVEPOINT countersign;\n(?:END IF;\n)?END$/,
);
const claim = expect.stringMatching(/^INSERT INTO [^;]*_nonces`[^;]*$/);
const add = expect.stringMatching(/^INSERT INTO [^;]*_idempotency`[^;]*$/);
const start = ["START TRANSACTION", expect.stringMatching(/^SET @countersign_[^;]* SESSION autocommit = 0$/)];

/** What comes before the handler: MySQL takes single statements alone. Of keys that are there it gives the rows in one more. */
function begun({ hasNonce = true, isThere = false } = {}): unknown[] {
  if (!isOnMysql) return [begin];
  const look = expect.stringMatching(/^SELECT [^;]* FOR UPDATE$/);
  return [...start, ...(hasNonce ? [claim] : []), add, ...(isThere ? [look] : [])];
}

/** A statement, on MariaDB between the release of the savepoint and the next one. */
function marked(statement: string): unknown {
  const text = isOnMysql
    ? `${statement} = \\?`
    : `BEGIN NOT ATOMIC\nRELEASE SAVEPOINT countersign;\n${statement} = [^;]*;\nSELECT ROW_COUNT\\(\\) AS changed;\nSAVEPOINT countersign;\nEND`;
  return expect.stringMatching(new RegExp(`^${text}$`));
}

const insertion = expect.stringContaining("_payouts VALUES (?)");
const mark = marked("UPDATE [^;]*_idempotency`[^;]* state = 'done'[^;]* AND @countersign_run");
// Behind a failure.
const probe = marked(
  "UPDATE [^;]*_idempotency`[^;]* SET version = version \\+ 1\nWHERE [^;]* AND @countersign_run",
);

/** One message that commits: it gives the session back, with the condition that keys are done, or without. */
function commits(autocommit: string): unknown {
  const set = `SET SESSION autocommit = ${autocommit}, [^;]*`;
  const text = isOnMysql ? set : `BEGIN NOT ATOMIC\nRELEASE SAVEPOINT countersign;\n${set};\nEND`;
  return expect.stringMatching(new RegExp(`^${text}$`));
}

const commit = commits(
  "IF\\(\\(SELECT COUNT\\(\\*\\) FROM [^;]*_idempotency`[^;]* AND state = 'done'\\) = \\d, @countersign_autocommit, 2\\)",
);

// It says as well whether a table without transactions has kept rows.
const rollback = isOnMysql
  ? ["ROLLBACK", "SHOW WARNINGS"]
  : ["BEGIN NOT ATOMIC\nROLLBACK;\nSHOW WARNINGS;\nEND"];
const givenBack = expect.stringMatching(/^SET SESSION autocommit = @countersign_autocommit, [^;]*$/);

describeOnMysql("a payment with mysql2", () => {
  test("takes four messages on MariaDB and seven on MySQL, and one more for each further statement", async () => {
    const { transactions, insert, messages } = await recorded();
    await pay(transactions, claimOf([newKey("k")], { nonce: newNonce("n") }), async (tx) => {
      await insert(tx, "one");
      await insert(tx, "two");
    });
    expect(await messages()).toEqual([...begun(), insertion, insertion, mark, commit]);
    await pay(transactions, claimOf([newKey("l")], { nonce: newNonce("m") }), (tx) => insert(tx, "three"));
    const all = await messages();
    expect(all).toEqual([...begun(), insertion, mark, commit]);
    expect(all).toHaveLength(isOnMysql ? 7 : 4);
  });

  test("that is refused takes one more than one that is paid, and on MySQL two", async () => {
    const { transactions, messages } = await recorded();
    const refuse = () => Promise.reject(new Error("refused"));
    const refused = pay(transactions, claimOf([newKey("k")], { nonce: newNonce("n") }), refuse);
    await expect(refused).rejects.toThrow("refused");
    expect(await messages()).toEqual([...begun(), probe, ...rollback, givenBack]);
  });

  test("that was made already, or whose nonce was used, takes two on MariaDB and six on MySQL", async () => {
    const { transactions, messages } = await recorded();
    await pay(transactions, claimOf([newKey("k")], { nonce: newNonce("n") }));
    await messages();
    await pay(transactions, claimOf([newKey("k")], { nonce: newNonce("m") }));
    expect(await messages()).toEqual([...begun({ isThere: true }), commits("@countersign_autocommit")]);
    const replay = transactions.run(async (tx) => {
      const { nonce } = await transactions.begin(tx, claimOf([newKey("other")], { nonce: newNonce("n") }));
      throw new Error(nonce);
    });
    await expect(replay).rejects.toThrow("seen");
    const own = expect.stringMatching(/^SELECT token = \? AS is_own [^;]*$/);
    expect(await messages()).toEqual(
      isOnMysql
        ? [...start, claim, own, "ROLLBACK", givenBack]
        : [begin, expect.stringMatching(/^BEGIN NOT ATOMIC\nROLLBACK;\nSET SESSION [^;]*;?\nEND$/)],
    );
  });

  test("among others in one transaction takes one more than its own statements", async () => {
    const { transactions, insert, messages } = await recorded();
    const keys = ["a", "b", "c"].map(newKey);
    await pay(transactions, claimOf(keys), async (tx, { key }) => {
      if (key !== "b") await insert(tx, key);
    });
    expect(await messages()).toEqual([
      ...begun({ hasNonce: false }),
      insertion,
      mark,
      mark,
      insertion,
      mark,
      commit,
    ]);
  });

  test("on a session without autocommit ends with the library's COMMIT", async () => {
    const { transactions, insert, messages } = await recorded("autocommit = 0");
    await pay(transactions, claimOf([newKey("k")]), (tx) => insert(tx, "one"));
    expect(await messages()).toEqual([...begun({ hasNonce: false }), insertion, mark, commit, "COMMIT"]);
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
    const stores = openStores(pool, { table, now: clock.now, database: counting });
    await stores.ready();
    sent = 0;
    await step(stores.idempotency, expired.status === "acquired" ? expired.fence : 0);
    expect(sent).toBe(messages);
  });
});
