import type { Database, SqlValue } from "@countersign/idempotency";
import type { Row } from "@countersign/idempotency/store";
import { commit, confirm, idOf } from "./commit.ts";
import type { DatabaseQueryable, PostgresQueryable } from "./queryable.ts";

/** Whether `value` is what `fromPg` or its like made, of any dialect. */
export function isDatabase(value: unknown): value is Database<unknown> {
  return (
    typeof value === "object" &&
    value !== null &&
    ["run", "query", "alone"].every((name) => typeof Reflect.get(value, name) === "function")
  );
}

/** Runs the stores' statements outside of any transaction of the library. */
export function queryableOf(database: Database<unknown>): DatabaseQueryable {
  const alone = queryable((text, values) => database.alone(text, values));
  const confirmed = queryable((text, values) => confirmedAlone(database, text, values));
  const { tellsUnconfirmed = false } = database;
  return {
    ...alone,
    queryConfirmed: (text, values) => (tellsUnconfirmed ? alone : confirmed).query(text, values),
  };
}

/** In a transaction: only so do both commits come on one connection. Another one may be of the server that has taken over. */
function confirmedAlone<Tx>(
  database: Database<Tx>,
  text: string,
  values: readonly SqlValue[],
): Promise<readonly Row[]> {
  return database.run(async (tx) => {
    const rows = await database.query(tx, text, values);
    const id = await idOf(database, tx);
    if (id === undefined) return rows;
    await commit(database, tx, id);
    await confirm(database, tx);
    return rows;
  });
}

function queryable(send: Database<unknown>["alone"]): PostgresQueryable {
  return {
    async query(text, values = []) {
      const plain = inOrder(text, values);
      return { rows: await send(plain.text, plain.values) };
    },
  };
}

interface Statement {
  readonly text: string;
  readonly values: readonly SqlValue[];
}

/** The statement with each placeholder once and in order: some libraries know only `?`. The stores' texts have `$` for nothing else. */
function inOrder(text: string, values: readonly unknown[]): Statement {
  const ordered: SqlValue[] = [];
  const renumbered = text.replaceAll(/\$(\d+)/g, (_placeholder, number: string) => {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the stores send texts, numbers, booleans, bytes and null
    ordered.push(values[Number(number) - 1] as SqlValue);
    return `$${ordered.length}`;
  });
  return { text: renumbered, values: ordered };
}
