import type { Database, SqlValue } from "@countersign/idempotency";
import type { Within } from "@countersign/idempotency/store";
import {
  changeByKysely,
  type KyselyExecutor,
  type KyselyInstance,
  kyselyDialect,
  passThrough,
  sendByKysely,
  sendScriptByKysely,
} from "./kysely-executor.ts";
import { GatedTransactions } from "./transaction.ts";

export interface KyselyTransaction extends KyselyExecutor {
  readonly isTransaction: true;
}

export interface KyselyDb<Tx extends KyselyTransaction> extends KyselyInstance {
  transaction(): { execute(work: (tx: Tx) => Promise<void>): Promise<unknown> };
}

/**
 * A `Kysely` on PostgreSQL or MySQL; handlers get its `Transaction`. Throws a TypeError on another dialect. Has no `script` on
 * PostgreSQL: Kysely drops the rows of several statements. Before 0.29 it does not tell that PostgreSQL answered COMMIT with ROLLBACK: only a last statement finds
 * that out.
 */
export function fromKysely<Tx extends KyselyTransaction>(db: KyselyDb<Tx>): Database<Tx> {
  if (db.isTransaction) throw new TypeError("fromKysely: needs a Kysely, got its Transaction");
  const dialect = kyselyDialect("fromKysely", db);
  const transactions = new GatedTransactions<Tx>("Kysely", dialect);
  return {
    dialect,
    library: "Kysely",
    run: (work) =>
      transactions.run(
        (run) => db.transaction().execute(run),
        (tx: Tx, gate) => {
          passThrough(tx, gate);
          return tx;
        },
        work,
      ),
    gateOf: (tx) => transactions.gateOf(tx),
    async query(tx, text, values) {
      assertTransaction(tx);
      return sendByKysely(tx, dialect, text, values);
    },
    alone: (text, values) => sendByKysely(db, dialect, text, values),
    ...(dialect === "mysql" && {
      async change(text: string, values: readonly SqlValue[], within?: Within<Tx>) {
        if (within !== undefined) assertTransaction(within.tx);
        return changeByKysely(within?.tx ?? db, text, values);
      },
      async script(tx: Tx, text: string) {
        assertTransaction(tx);
        return sendScriptByKysely(tx, text);
      },
    }),
  };
}

/** A caller without types can give the Kysely itself. */
function assertTransaction(tx: KyselyTransaction): void {
  const given: unknown = Reflect.get(Object(tx), "isTransaction");
  if (given !== true) throw new TypeError("fromKysely: needs the Transaction that the handler was given");
}
