import type { Database, SqlValue } from "@countersign/idempotency";
import type { Row } from "@countersign/idempotency/store";
import {
  beginPostgresJs,
  gatedBy,
  type PostgresJsPool,
  type PostgresJsSender,
  type PostgresJsTransaction,
} from "./postgres-js-transaction.ts";
import { poolOfSize } from "./pool-size.ts";
import { rowList } from "./rows.ts";
import { GatedTransactions } from "./transaction.ts";

export interface PostgresJs<Tx extends PostgresJsTransaction> extends PostgresJsSender, PostgresJsPool<Tx> {
  readonly options: { readonly max?: number; readonly transform: { readonly column: ColumnNames } };
}

interface ColumnNames {
  readonly from?: unknown;
  readonly to?: ((name: string) => string) | undefined;
}

const library = "postgres.js";
const unknownType = 705;

/** The `sql` of postgres.js; handlers get its transaction's. Behind PgBouncer it needs `prepare: false`. The pool stays the app's to end. */
export function fromPostgresJs<Tx extends PostgresJsTransaction>(sql: PostgresJs<Tx>): Database<Tx> {
  if (typeof sql.begin !== "function")
    throw new TypeError("fromPostgresJs: needs the sql that postgres() has returned");
  const nameOf = columnNames(sql.options.transform.column);
  const send = async (sender: PostgresJsSender, text: string, values: readonly SqlValue[]) => {
    const result = await sender.unsafe(
      text,
      values.map((value) => parameter(sender, value)),
    );
    return renamed(rowList(library, result), nameOf);
  };
  const transactions = new GatedTransactions<Tx>(library, "postgresql");
  // The same transactions for the store, whose statements pass no gate.
  const own = new WeakMap<Tx, Tx>();
  const ownOf = (tx: Tx): Tx => {
    // A nested transaction has none: its statements pass the gate, and are the handler's.
    const isTransaction = typeof Object(tx).savepoint === "function";
    const opened = own.get(tx) ?? (isTransaction ? tx : undefined);
    if (opened !== undefined) return opened;
    throw new TypeError("fromPostgresJs: needs the transaction that the handler was given, not sql");
  };
  return {
    dialect: "postgresql",
    library,
    tellsRollback: true,
    pool: () => poolOfSize(sql.options, sql.options.max),
    run: (work) =>
      transactions.run(
        (run: (tx: Tx) => Promise<void>) => beginPostgresJs(sql, run),
        (opened, gate) => {
          const tx = gatedBy(opened, gate);
          own.set(tx, opened);
          return tx;
        },
        work,
      ),
    gateOf: (tx) => transactions.gateOf(tx),
    query: async (tx, text, values) => send(ownOf(tx), text, values),
    alone: (text, values) => send(sql, text, values),
    async script(tx, text) {
      const result = await ownOf(tx).unsafe(text);
      return renamed(rowList(library, Array.isArray(result) ? result.flat() : result), nameOf);
    },
  };
}

/** With its type unknown to postgres.js, the server reads a text as pg would send it; else a text for jsonb became a JSON string. */
function parameter(sender: PostgresJsSender, value: SqlValue): unknown {
  return value === null || value instanceof Uint8Array ? value : sender.typed(value, unknownType);
}

/** The way back from names such as those of `postgres.camel`. */
function columnNames({ from, to }: ColumnNames): ((name: string) => string) | undefined {
  if (typeof from !== "function") return undefined;
  if (to === undefined)
    throw new TypeError(
      "fromPostgresJs: transform: needs column.to beside column.from, such as in postgres.camel",
    );
  return to;
}

function renamed(rows: readonly Row[], nameOf: ((name: string) => string) | undefined): readonly Row[] {
  if (nameOf === undefined) return rows;
  return rows.map((row) =>
    Object.fromEntries(Object.entries(row).map(([name, value]) => [nameOf(name), value])),
  );
}
