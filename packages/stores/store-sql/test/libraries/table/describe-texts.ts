import { wrappedErrors } from "@countersign/idempotency/store";
import { mysqlEngine } from "@countersign/test-support/servers/engines.ts";
import { expect, test } from "@jest/globals";
import { openEach, payerOn, type OpenStores } from "./payer.ts";
import { describeOn, type Opened, type TableRow } from "./row.ts";

const refusal = /is not the handler's|is not known to leave|cannot be read for certain/;

/** Of a table of the test's own. Each would end the transaction, or take our savepoint. */
const refused = {
  postgresql: () => [
    "COMMIT",
    "end",
    "ROLLBACK",
    "/* why */ Abort;",
    "BEGIN",
    "COMMIT AND CHAIN",
    "PREPARE TRANSACTION 'countersign'",
    "SELECT 1; ROLLBACK; BEGIN",
    "RELEASE SAVEPOINT countersign",
    "ROLLBACK TO countersign",
  ],
  mysql: (table: string) => [
    "COMMIT",
    "# why\nrollback",
    "/*!50000 COMMIT */",
    "START TRANSACTION",
    "BEGIN NOT ATOMIC COMMIT; END",
    "IF 1 THEN COMMIT; END IF",
    "EXECUTE IMMEDIATE 'COMMIT'",
    "SET STATEMENT max_statement_time = 10 FOR COMMIT",
    "SET autocommit = 1",
    `ALTER TABLE ${table} ADD COLUMN more INT`,
    `TRUNCATE ${table}`,
    `LOCK TABLES ${table} WRITE`,
    `ANALYZE TABLE ${table}`,
    "FLUSH TABLES",
    "ROLLBACK TO SAVEPOINT countersign",
  ],
};

/** Each leaves the transaction open. */
const isOnMysql = mysqlEngine === "mysql";

const taken = {
  postgresql: (table: string) => [
    "SAVEPOINT own",
    `INSERT INTO ${table} (id) VALUES ('; COMMIT')`,
    "ROLLBACK TO SAVEPOINT own",
    "RELEASE own",
    "SET LOCAL lock_timeout = '5s'",
    `CREATE TABLE ${table}_more (id text)`,
    `LOCK TABLE ${table}_more`,
    `DROP TABLE ${table}_more`,
    "DO $$ BEGIN PERFORM 1; END $$",
    `SELECT id FROM ${table} FOR UPDATE`,
    "PREPARE own AS SELECT 1",
    "DEALLOCATE own",
  ],
  mysql: (table: string) => [
    "SAVEPOINT own",
    `INSERT INTO ${table} (id) VALUES ('it\\'s; COMMIT')`,
    "ROLLBACK TO SAVEPOINT own",
    "RELEASE SAVEPOINT own",
    // A hundred seconds: MySQL counts milliseconds.
    `SET @own = 1, SESSION ${isOnMysql ? "max_execution_time = 100000" : "max_statement_time = 100"}`,
    "SET NAMES utf8mb4",
    `CREATE TEMPORARY TABLE ${table}_more (id INT)`,
    `DROP TEMPORARY TABLE ${table}_more`,
    ...(isOnMysql
      ? []
      : [
          `CREATE OR REPLACE TEMPORARY TABLE ${table}_more (id INT) SELECT 1 AS id`,
          `DROP TEMPORARY TABLE ${table}_more`,
          `SET STATEMENT max_statement_time = 10 FOR SELECT id FROM ${table}`,
          `ANALYZE FORMAT=JSON SELECT id FROM ${table}`,
        ]),
    `SELECT /*!50000 SQL_NO_CACHE */ id FROM ${table} FOR UPDATE`,
    `REPLACE INTO ${table} (id) VALUES ('replaced')`,
    `DELETE FROM ${table} WHERE id = 'replaced'`,
    `WITH own AS (SELECT 1 AS id) SELECT id FROM own`,
    `(SELECT id FROM ${table})`,
    isOnMysql ? "VALUES ROW(1)" : "VALUES (1)",
    "DO 1",
    "SHOW TABLES",
    `DESCRIBE ${table}`,
    `EXPLAIN SELECT id FROM ${table}`,
    `HANDLER ${table} OPEN`,
    `HANDLER ${table} CLOSE`,
    "HELP 'SELECT'",
  ],
};

/** What a handler's `tx` takes of SQL. */
export function describeTexts<Tx>(row: TableRow<Tx>): void {
  describeOn(row.engine)(`a handler of a payment by ${row.name}`, () => {
    let opened: Opened<Tx>;
    let stores: OpenStores<Tx>;
    openEach(row, (made) => ({ opened, stores } = made));

    async function refusalOf(tx: Tx, text: string): Promise<unknown> {
      try {
        return [text, "was sent", await opened.exec(tx, text)];
      } catch (error) {
        return wrappedErrors(error)
          .map((each) => String(Reflect.get(each, "message")))
          .find((message) => refusal.test(message));
      }
    }

    test("that would end the transaction by a text is not paid, and its key is free", async () => {
      for (const text of refused[row.engine](opened.table)) {
        let isFirst = true;
        const pay = payerOn(stores, async (tx, key) => {
          await opened.insertByHandler(tx, isFirst ? "before" : "again");
          if (!isFirst) return;
          isFirst = false;
          await opened.exec(tx, text);
          await opened.insertByHandler(tx, `behind ${key.length}`);
        });
        // oxlint-disable-next-line no-await-in-loop -- one payment after the other
        const answer = await pay("k");
        expect([text, answer]).not.toEqual([text, 200]);
        expect([text, answer]).not.toEqual([text, expect.stringMatching(/^(?:transaction-|held)/)]);
        // oxlint-disable-next-line no-await-in-loop -- as above
        expect([text, await opened.countRows()]).toEqual([text, 0]);
        // oxlint-disable-next-line no-await-in-loop -- as above
        expect(await stores.idempotency.read("payments:k")).toBeUndefined();
      }
      const pay = payerOn(stores, (tx) => opened.insertByHandler(tx, "again"));
      expect([await pay("k"), await opened.countRows()]).toEqual([200, 1]);
    });

    test("that swallows the refusal is paid once: nothing was sent", async () => {
      const pay = payerOn(stores, async (tx, key) => {
        await opened.insertByHandler(tx, key);
        for (const text of refused[row.engine](opened.table)) {
          // oxlint-disable-next-line no-await-in-loop -- one statement after the other
          expect([text, await refusalOf(tx, text)]).toEqual([text, expect.stringMatching(refusal)]);
        }
      });
      expect([await pay("k"), await pay("k")]).toEqual([200, "already-processed"]);
      expect(await opened.countRows()).toBe(1);
    });

    test("finds the transaction open behind the texts that its tx takes", async () => {
      let fails = true;
      const failure = new Error("the handler fails");
      const pay = payerOn(stores, async (tx, key) => {
        await opened.database.query(tx, `INSERT INTO ${opened.table} (id) VALUES ('${key}')`, []);
        for (const text of taken[row.engine](opened.table)) {
          // oxlint-disable-next-line no-await-in-loop -- one statement after the other
          await opened.exec(tx, text);
        }
        if (fails) throw failure;
      });
      // None of them has committed, and none has rolled back.
      expect([await pay("k"), await opened.countRows()]).toEqual([failure.message, 0]);
      fails = false;
      expect([await pay("k"), await opened.countRows()]).toEqual([200, 1]);
    });

    // Where the library has any.
    test("is refused such a text in a nested transaction too", async () => {
      const answers: unknown[] = [];
      const pay = payerOn(stores, async (tx, key) => {
        await opened.insertByHandler(tx, key);
        await opened.nest?.(tx, async (inner) => {
          answers.push(await refusalOf(inner, "COMMIT"), await refusalOf(inner, "ROLLBACK"));
        });
      });
      expect(await pay("k")).toBe(200);
      expect(answers).toEqual(answers.map(() => expect.stringMatching(refusal)));
    });
  });
}
