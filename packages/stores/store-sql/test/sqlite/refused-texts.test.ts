import { describe, expect, test } from "@jest/globals";
import { GatedDatabase } from "../../dist/sqlite/gated-database.js";
import { type Connection, drivers } from "./connections.ts";
import { claimOf, failureOf, insert, key, platform } from "./payments.ts";

const refusal = /^SQLite: .*is not the handler's/;

interface More extends Connection {
  pragma?(text: string): unknown;
  transaction?(work: () => unknown): () => unknown;
}

const texts = [
  "COMMIT",
  "end;",
  "ROLLBACK",
  "BEGIN",
  "-- why\n/* ; */ commit transaction",
  "\ufeffCOMMIT",
  "INSERT INTO payouts VALUES ('more'); COMMIT; BEGIN",
  "RELEASE countersign",
  'ROLLBACK TO "countersign"',
  "SAVEPOINT countersign",
];

const ways: Readonly<Record<string, (tx: More, text: string) => unknown>> = {
  "exec()": (tx, text) => tx.exec(text),
  "prepare()": (tx, text) => tx.prepare(text).run(),
};

describe.each(drivers)("what a handler's tx takes, %s", (_driver, open) => {
  test.each(Object.keys(ways).flatMap((way) => texts.map((text) => [way, text] as const)))(
    "by %s is not %j: nothing is paid, and the key is free",
    async (way, text) => {
      const { transactions, idempotency, paid } = platform(open);
      const pay = (send: (tx: Connection) => unknown) =>
        transactions.run((tx) => {
          void transactions.begin(tx, claimOf(key));
          insert(tx, "before");
          send(tx);
          insert(tx, "after");
          void transactions.keep(tx, [key], false);
        });
      const error = await failureOf(pay((tx) => ways[way]?.(tx, text)));
      expect(String(Reflect.get(Object(error), "message"))).toMatch(refusal);
      expect(transactions.faultOf(error)).toBeUndefined();
      expect(paid()).toEqual([]);
      expect(idempotency.read(key.key)).toBeUndefined();
      // Swallowed, it has sent nothing.
      await pay((tx) => expect(() => ways[way]?.(tx, text)).toThrow(refusal));
      expect(paid()).toEqual(["after", "before"]);
      expect(idempotency.read(key.key)).toMatchObject({ state: "done" });
    },
  );

  test("is every other text, by any way of the driver", async () => {
    const { transactions, paid } = platform(open);
    await transactions.run((given) => {
      const tx: More = given;
      void transactions.begin(given, claimOf(key));
      tx.exec("SAVEPOINT own; INSERT INTO payouts VALUES ('own'); ROLLBACK TO own; RELEASE own");
      tx.exec("CREATE TABLE kept (id TEXT); INSERT INTO kept VALUES ('; COMMIT;'); -- COMMIT");
      tx.exec("CREATE TRIGGER own AFTER INSERT ON kept BEGIN DELETE FROM kept; SELECT 1; END; SELECT 1");
      // A value is no text.
      tx.prepare("INSERT INTO payouts VALUES (?)").run("COMMIT");
      if (typeof tx.pragma === "function") {
        const { pragma } = tx;
        expect(() => pragma("user_version; COMMIT")).toThrow(refusal);
        pragma("user_version");
      }
      void transactions.keep(given, [key], false);
    });
    expect(paid()).toEqual(["COMMIT"]);
  });

  test("is a transaction of the driver's own as a savepoint, or not at all", async () => {
    const { database, transactions, paid } = platform(open);
    if (typeof Reflect.get(database, "transaction") !== "function") return;
    const failed = failureOf(
      transactions.run((given) => {
        const tx: More = given;
        void transactions.begin(given, claimOf(key));
        tx.transaction?.(() => insert(given, "inner"))();
        throw new Error("rolled back with the rest");
      }),
    );
    // libsql begins another transaction, which SQLite refuses.
    expect(String(await failed)).toMatch(/within a transaction|rolled back with the rest/);
    expect(paid()).toEqual([]);
  });
});

test("what a handler's tx takes is judged in templates, and not in the names of functions", () => {
  const sent: unknown[] = [];
  const gated = new GatedDatabase({
    function: (name: string) => void sent.push(name),
    createTagStore: () => ({
      run: (strings: TemplateStringsArray, ...values: unknown[]) => void sent.push(strings.join("?"), values),
    }),
  });
  gated.open();
  const { tx } = gated;
  tx.function("commit");
  const tags = tx.createTagStore();
  expect(tags.run`INSERT INTO payouts VALUES (${"; COMMIT"})`).toBeUndefined();
  expect(() => tags.run`COMMIT`).toThrow(refusal);
  expect(sent).toEqual(["commit", "INSERT INTO payouts VALUES (?)", ["; COMMIT"]]);
  gated.close();
  expect(() => tx.function("COMMIT")).toThrow(/the handler's transaction is closed/);
});
