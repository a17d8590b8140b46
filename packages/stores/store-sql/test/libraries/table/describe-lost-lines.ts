import { expect, test } from "@jest/globals";
import { eventually, sleep } from "@countersign/test-support/runs/eventually.ts";
import { createTaskQueue } from "@countersign/idempotency/work";
import { type OpenStores, openEach, payerOn } from "./payer.ts";
import { describeOn, endSession, type Opened, poolSize, type TableRow } from "./row.ts";

const ownId = { postgresql: "SELECT pg_backend_pid() AS id", mysql: "SELECT CONNECTION_ID() AS id" };
const longStatement = { postgresql: "SELECT pg_sleep(60)::text", mysql: "SELECT SLEEP(60)" };

/** What a payment through the library does when its line is lost, or seems to be. */
export function describeLostLines<Tx>(row: TableRow<Tx>): void {
  let opened: Opened<Tx>;
  let stores: OpenStores<Tx>;

  describeOn(row.engine)(`a payment by ${row.name}, and its line`, () => {
    openEach(row, (made) => ({ opened, stores } = made));

    test("lost in a statement: 503, and none of those is undone that take its place", async () => {
      const { database } = opened;
      const pay = payerOn(stores, (tx, key) => opened.insertByHandler(tx, key));
      const others: Promise<unknown>[] = [];
      const dying = payerOn(stores, async (tx, key) => {
        await opened.insertByHandler(tx, key);
        const [self] = await database.query(tx, ownId[row.engine], []);
        const alone = (text: string) => database.alone(text, []);
        const id = Number(self?.["id"]);
        const statement = database.query(tx, longStatement[row.engine], []);
        const ending = row.engine === "postgresql" ? endSession(alone, id) : alone(`KILL ${id}`);
        for (let index = 0; index < 4 * poolSize; index += 1) others.push(pay(`other ${index}`));
        await Promise.all([statement, ending]);
      });
      expect(await dying("a")).toBe("transaction-unavailable");
      const answers = await Promise.all(others);
      const paid = answers.filter((answer) => answer === 200).length;
      // A pool may hand the lost line out once more.
      expect(answers.filter((answer) => answer === "transaction-unavailable")).toHaveLength(
        answers.length - paid,
      );
      expect(await opened.countRows()).toBe(paid);
      expect(await pay("a")).toBe(200);
    });

    test("alive while the handler's call to somebody else fails: its own error, and its nonce stays", async () => {
      const cause = Object.assign(new Error("connect ETIMEDOUT"), { code: "ETIMEDOUT" });
      const failing = payerOn(stores, async (tx, key) => {
        await opened.insertByHandler(tx, key);
        throw new TypeError("fetch failed", { cause });
      });
      expect(await failing("a", "n")).toBe("fetch failed");
      expect(await failing("a", "n")).toBe("nonce-replayed");
      expect(await opened.countRows()).toBe(0);
      expect(await payerOn(stores, (tx, key) => opened.insertByHandler(tx, key))("a")).toBe(200);
    });

    test("idle for too long in a task's handler: the attempt counts, and its reason is kept", async () => {
      const { work } = stores;
      if (work === undefined) throw new Error(`${row.engine} has no table of work`);
      const tasks = createTaskQueue({
        stores: { ...stores, work },
        queue: "idle",
        idleTimeoutMs: 1_000,
        maxAttempts: 1,
        async exactlyOnce(_task, { tx }) {
          const insert = (id: string) =>
            opened.database.query(tx, `INSERT INTO ${opened.table} (id) VALUES ('${id}')`, []);
          // MariaDB bounds what has written.
          await insert("a");
          await sleep(2_500);
          await insert("b");
        },
      });
      await stores.transactions.run((tx) => tasks.add(tx, { id: "1", body: "" }));
      tasks.start();
      await eventually(async () => (await work.read("idle", "1"))?.state === "dead");
      await tasks.drain();
      const record = await work.read("idle", "1");
      expect(record).toMatchObject({
        attempts: 1,
        failures: [{ attempt: 1, reason: expect.any(String) }],
      });
      expect(await opened.countRows()).toBe(0);
    });
  });
}
