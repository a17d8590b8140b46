// Libraries that write on, each statement by itself, when a handler has ended the transaction by their own methods.
import type { Database } from "@countersign/idempotency";
import { expect, test } from "@jest/globals";
import type { EntityManager } from "typeorm";
import { openEach, payerOn, type OpenStores } from "./table/payer.ts";
import { describeOn, type Opened } from "./table/row.ts";
import { typeOrmRows } from "./table/typeorm.ts";

for (const row of typeOrmRows) {
  describeOn(row.engine)(`a payment by ${row.name} that its handler rolls back before it pays`, () => {
    let opened: Opened<EntityManager>;
    let stores: OpenStores<EntityManager>;
    openEach(row, (made) => ({ opened, stores } = made));

    test("is not paid again: its key is held", async () => {
      let paid = 0;
      const pay = payerOn(stores, async (tx) => {
        await tx.queryRunner?.rollbackTransaction();
        await opened.insertByHandler(tx, String(++paid));
      });
      expect(await pay("a")).toBe("transaction-broken");
      expect(await pay("a")).toBe("held");
      expect(paid).toBe(1);
      // And the connection is as it was.
      expect(await isAlone(opened.database)).toBe(true);
      expect(await payerOn(stores, (tx) => opened.insertByHandler(tx, "b"))("b")).toBe(200);
    });
  });
}

async function isAlone({ dialect, alone }: Database<EntityManager>): Promise<boolean> {
  if (dialect === "postgresql") return true;
  const [session] = await alone("SELECT @@autocommit = 1 AND @@in_transaction = 0 AS is_alone", []);
  return Number(session?.["is_alone"]) === 1;
}
