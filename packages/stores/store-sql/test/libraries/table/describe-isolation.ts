import { randomUUID } from "node:crypto";
import { expect, test } from "@jest/globals";
import { barrier } from "./describe-database.ts";
import { type OpenStores, openEach, payerOn } from "./payer.ts";
import { describeOn, type Opened, poolSize, type TableRow } from "./row.ts";

const levels = ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"] as const;

const statements = {
  postgresql: {
    set: "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL",
    show: "SELECT current_setting('transaction_isolation') AS level",
  },
  mysql: { set: "SET SESSION TRANSACTION ISOLATION LEVEL", show: "SELECT @@tx_isolation AS level" },
};

/** Payments by sessions whose isolation level is not the server's. */
export function describeIsolation<Tx>(row: TableRow<Tx>): void {
  const { set, show } = statements[row.engine];
  let opened: Opened<Tx>;
  let stores: OpenStores<Tx>;

  describeOn(row.engine)(`at another isolation level by ${row.name}`, () => {
    openEach(row, (made) => ({ opened, stores } = made));

    test.each(levels)("%s: many duplicates are paid once, beside another payment", async (level) => {
      await onEveryConnection(`${set} ${level}`);
      const seen = new Set<string>();
      const handler = async (tx: Tx, key: string): Promise<void> => {
        const [shown] = await opened.database.query(tx, show, []);
        seen.add(String(shown?.["level"]).replace("-", " ").toUpperCase());
        await opened.insertByHandler(tx, `${key}${randomUUID().slice(0, 8)}`);
        await new Promise((resolve) => setTimeout(resolve, 20));
      };
      // Each has lanes of its own, as a process has.
      const [one, other] = [payerOn(stores, handler), payerOn(stores, handler)];
      const [beside, ...answers] = await Promise.all([
        one("b"),
        ...Array.from({ length: 3 }, () => [one("a"), other("a")]).flat(),
      ]);
      expect(beside).toBe(200);
      expect(answers.filter((answer) => answer === 200)).toHaveLength(1);
      expect(answers.filter((answer) => answer === "already-processed")).toHaveLength(5);
      expect(await opened.countRows()).toBe(2);
      expect([...seen]).toEqual([level]);
    });
  });

  /** Sends a statement by each connection of the pool: all are taken at the same time. */
  async function onEveryConnection(text: string): Promise<void> {
    const all = barrier(poolSize);
    const each = () =>
      opened.database.run(async (tx) => {
        await opened.database.query(tx, text, []);
        await all();
      });
    await Promise.all(Array.from({ length: poolSize }, each));
  }
}
