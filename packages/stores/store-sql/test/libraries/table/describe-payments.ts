import { expect, test } from "@jest/globals";
import { refuse } from "@countersign/idempotency-guard";
import type { Row } from "@countersign/idempotency/store";
import { collectNotices } from "@countersign/test-support/runs/faulty-store.ts";
import { mysqlEngine } from "@countersign/test-support/servers/engines.ts";
import { notAsked } from "./describe-database.ts";
import { type OpenStores, openEach, payerOn } from "./payer.ts";
import { describeOn, type Opened, type TableRow } from "./row.ts";
import { allowWarnings, expectWarning } from "@countersign/test-support/runs/expect-warning.ts";

/** The server's own count of the messages on this connection. */
const questions = `SELECT CONNECTION_ID() AS connection, VARIABLE_VALUE AS count
FROM ${mysqlEngine === "mysql" ? "performance_schema.session_status" : "information_schema.SESSION_STATUS"} WHERE VARIABLE_NAME = 'QUESTIONS'`;

/** What a payment through the library has to do, with the stores on it. */
export function describePayments<Tx>(row: TableRow<Tx>): void {
  let opened: Opened<Tx>;
  let stores: OpenStores<Tx>;

  const payer = (handler: (tx: Tx, key: string) => unknown) => payerOn(stores, handler);

  describeOn(row.engine)(`a payment by ${row.name}`, () => {
    openEach(row, (made) => ({ opened, stores } = made));

    test("commits with its key and nonce, and once", async () => {
      const pay = payer((tx, key) => opened.insertByHandler(tx, key));
      expect(await pay("a", "n")).toBe(200);
      expect(await pay("a", "n")).toBe("nonce-replayed");
      expect(await pay("a")).toBe("already-processed");
      expect(await opened.countRows()).toBe(1);
    });

    test("that is refused keeps its nonce, and its key is free", async () => {
      const refused = payer(async (tx, key) => {
        await opened.insertByHandler(tx, key);
        throw refuse("account-frozen");
      });
      expect(await refused("a", "n")).toBe("account-frozen");
      expect(await refused("a", "n")).toBe("nonce-replayed");
      expect(await refused("a")).toBe("account-frozen");
      expect(await opened.countRows()).toBe(0);
    });

    // MariaDB rolls back a failed statement alone: what the handler wrote before is whole.
    const onPostgresql = row.engine === "postgresql" ? test : notAsked;
    onPostgresql("whose handler swallows an error is not answered as paid", async () => {
      const swallowing = payer(async (tx, key) => {
        await opened.insertByHandler(tx, key);
        await opened.database.query(tx, "SELECT 1 / 0", []).catch(() => {});
      });
      expect(await swallowing("a")).not.toBe(200);
      expect(await opened.countRows()).toBe(0);
    });

    const onMariadb = row.engine === "mysql" ? test : notAsked;
    const { messages: onMariaDb = 6, messagesOnMysql = 8 } = row;
    const messages = mysqlEngine === "mysql" ? messagesOnMysql : onMariaDb;
    onMariadb(`with one statement takes ${messages} messages`, async () => {
      // Its handler looks at the server by the store's own statements.
      allowWarnings(/^\[transaction-unused\]/);
      const looks: Row[] = [];
      const pay = payer(async (tx, key) => {
        if (key === "the first") await opened.insertByHandler(tx, key);
        else looks.push(...(await opened.database.query(tx, questions, [])));
      });
      expect(await pay("the first")).toBe(200);
      // From one look to the next: all of one payment.
      for (const key of ["a", "b", "c"]) expect(await pay(key)).toBe(200);
      expect(new Set(looks.map(({ connection }) => String(connection))).size).toBe(1);
      const counts = looks.map(({ count }) => Number(count));
      expect(counts.slice(1).map((count, index) => count - (counts[index] ?? 0))).toEqual([
        messages,
        messages,
      ]);
    });

    test("of a handler that writes no row by tx is noticed, once", async () => {
      const notices = collectNotices();
      const writing = payer((tx, key) => opened.insertByHandler(tx, key));
      const forgetting = payer((tx) => void tx);
      for (const [pay, key] of [
        [writing, "a"],
        [forgetting, "b"],
        [forgetting, "c"],
      ] as const)
        expect(await pay(key)).toBe(200);
      expect(notices.messages()).toEqual([expect.stringMatching(/without writing a row by tx/)]);
      expect(notices.codes()).toEqual(["transaction-unused"]);
      expectWarning(/^\[transaction-unused\]/);
      notices.stop();
    });

    test("is repeated after a serialization failure", async () => {
      let runs = 0;
      const pay = payer(async (tx, key) => {
        runs += 1;
        await opened.insertByHandler(tx, key);
        if (runs < 3) await opened.database.query(tx, conflicts[row.engine], []);
      });
      expect(await pay("a")).toBe(200);
      expect([runs, await opened.countRows()]).toEqual([3, 1]);
    });
  });
}

const conflicts = {
  postgresql: "DO $$ BEGIN RAISE EXCEPTION 'again' USING ERRCODE = 'serialization_failure'; END $$",
  mysql: "SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = 1213, MESSAGE_TEXT = 'again'",
};
