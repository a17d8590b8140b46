// Handlers that end the transaction by their library's own methods. TypeORM then writes on, each statement by itself; others give the
// connection back to the pool, on MariaDB with our settings of the session.
import type { Database } from "@countersign/idempotency";
import { expect, test } from "@jest/globals";
import type { EntityManager } from "typeorm";
import { knexRows } from "./table/knex.ts";
import { mikroOrmOnMysql, mikroOrmOnPostgresql } from "./table/mikro-orm.ts";
import { openEach, payerOn, type OpenStores } from "./table/payer.ts";
import { describeOn, type Opened, type TableRow } from "./table/row.ts";
import { sequelizeRows } from "./table/sequelize.ts";
import { typeOrmRows } from "./table/typeorm.ts";

for (const row of typeOrmRows) {
  describeOn(row.engine)(`a payment by ${row.name} that its handler rolls back before it pays`, () => {
    let opened: Opened<EntityManager>;
    let stores: OpenStores<EntityManager>;
    openEach(row, (made) => ({ opened, stores } = made));

    test("is not paid again: its key is held", async () => {
      let paid = 0;
      const pay = payerOn(stores, async (tx) => {
        // Past the gate: TypeORM's own method is refused.
        await opened.database.query(tx, "ROLLBACK", []);
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

type Ends = Readonly<Record<"commit" | "rollback", () => Promise<unknown>>>;

for (const row of knexRows) cannotEnd(row);
for (const row of sequelizeRows) cannotEnd(row);
for (const row of mikroOrmOnPostgresql) cannotEnd(row);
for (const row of mikroOrmOnMysql) cannotEnd(row);

function cannotEnd<Tx extends Ends>(row: TableRow<Tx>): void {
  describeOn(row.engine)(`a payment by ${row.name} whose handler`, () => {
    let opened: Opened<Tx>;
    let stores: OpenStores<Tx>;
    openEach(row, (made) => ({ opened, stores } = made));

    test.each(["commit", "rollback"] as const)("calls %s() is not paid, and its key is free", async (end) => {
      const ending = payerOn(stores, async (tx) => {
        await opened.insertByHandler(tx, "a");
        await tx[end]();
      });
      const refused = expect.stringContaining(`${end}() is not the handler's`);
      expect([await ending("a"), await ending("a")]).toEqual([refused, refused]);
      expect(await opened.countRows()).toBe(0);
      expect(await isAlone(opened.database)).toBe(true);
      expect(await payerOn(stores, (tx) => opened.insertByHandler(tx, "a"))("a")).toBe(200);
    });
  });
}

async function isAlone({ dialect, alone }: Pick<Database<never>, "alone" | "dialect">): Promise<boolean> {
  if (dialect === "postgresql") return true;
  const [session] = await alone("SELECT @@autocommit = 1 /*M! AND @@in_transaction = 0 */ AS is_alone", []);
  return Number(session?.["is_alone"]) === 1;
}
