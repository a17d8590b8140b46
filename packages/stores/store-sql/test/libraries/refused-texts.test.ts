// The ways in which each driver takes a text. Every library with its own way for SQL: table/describe-texts.ts.
import { writeFileSync } from "node:fs";
import path from "node:path";
import { wrappedErrors } from "@countersign/idempotency/store";
import { testFolder } from "@countersign/test-support/runs/after-test.ts";
import { expect, test } from "@jest/globals";
import { CompiledQuery, type Transaction } from "kysely";
import type { Connection as CallbackConnection } from "mysql2";
import type { PoolConnection } from "mysql2/promise";
import type { PoolClient } from "pg";
import type { TransactionSql } from "postgres";
import { kyselyRows } from "./table/kysely.ts";
import { mysql2Row } from "./table/mysql2.ts";
import { openEach, payerOn, type OpenStores } from "./table/payer.ts";
import { pgRow } from "./table/pg.ts";
import { postgresJsRows } from "./table/postgres-js.ts";
import { describeOn, type Opened, type TableRow } from "./table/row.ts";
import { typeOrmRows } from "./table/typeorm.ts";

const refusal = /is not the handler's|is not known to leave|cannot be read/;

type Ways<Tx> = Readonly<Record<string, (tx: Tx) => unknown>>;

/** Nothing that ends the transaction goes by any of these ways; what else goes by them is sent. */
function describeWays<Tx>(row: TableRow<Tx>, refused: Ways<Tx>, taken: Ways<Tx> = {}): void {
  describeOn(row.engine)(`a handler of a payment by ${row.name}`, () => {
    let opened: Opened<Tx>;
    let stores: OpenStores<Tx>;
    openEach(row, (made) => ({ opened, stores } = made));

    test.each(Object.entries(refused))("ends no transaction by %s", async (_way, send) => {
      const messages: unknown[] = [];
      let runs = 0;
      const pay = payerOn(stores, async (tx, key) => {
        runs += 1;
        await opened.insertByHandler(tx, key);
        if (runs > 1) return;
        try {
          await send(tx);
        } catch (error) {
          messages.push(...wrappedErrors(error).map((each) => Reflect.get(each, "message")));
          throw error;
        }
      });
      expect(await pay("k")).toEqual(messages[0]);
      expect(messages.find((message) => refusal.test(String(message)))).toBeDefined();
      expect(await opened.countRows()).toBe(0);
      expect(await stores.idempotency.read("payments:k")).toBeUndefined();
      expect([await pay("k"), await opened.countRows()]).toEqual([200, 1]);
    });

    test("sends other texts by these ways", async () => {
      const pay = payerOn(stores, async (tx, key) => {
        await opened.insertByHandler(tx, key);
        for (const send of Object.values(taken)) {
          // oxlint-disable-next-line no-await-in-loop -- one statement after the other
          await send(tx);
        }
      });
      expect(await pay("k")).toBe(200);
    });
  });
}

/** By a callback of the driver's. */
function called(send: (done: (error: unknown) => void) => unknown): Promise<void> {
  return new Promise((resolve, reject) => {
    send((error) => (error ? reject(error) : resolve()));
  });
}

const byPg: (text: string) => Ways<PoolClient> = (text) => ({
  "an object with a text": (tx) => tx.query({ text }),
  "an object with a text, prepared": (tx) => tx.query({ name: `of ${text}`, text }),
  "a callback": (tx) => called((done) => tx.query(text, done)),
});

/** As `pg-cursor` and `pg-query-stream` are. */
const queryObject = (members: object): Promise<void> & { handleError(error: unknown): void } => {
  let handleError!: (error: unknown) => void;
  const failed = new Promise<void>((_resolve, reject) => (handleError = reject));
  return Object.assign(failed, { ...members, submit() {}, handleError });
};

describeWays(
  pgRow(),
  {
    ...byPg("COMMIT"),
    "a cursor": (tx) => tx.query(queryObject({ text: "COMMIT" }) as never),
    "a stream": (tx) => tx.query(queryObject({ cursor: { text: "COMMIT" } }) as never),
    "an object without a text": (tx) => tx.query(queryObject({}) as never),
    "a name alone": (tx) => tx.query({ name: "of COMMIT" } as never),
  },
  byPg("SELECT 1"),
);

/** The types say that it has promises. */
const callbacksOf = (tx: PoolConnection): CallbackConnection =>
  tx.connection as unknown as CallbackConnection;

const byMysql2: (text: string) => Ways<PoolConnection> = (sql) => ({
  execute: (tx) => tx.execute(sql),
  "an object": (tx) => tx.query({ sql }),
  "a prepared statement": async (tx) => (await tx.prepare(sql)).execute([]),
  "a callback": (tx) => called((done) => callbacksOf(tx).query(sql, done)),
  "an object and a callback": (tx) => called((done) => callbacksOf(tx).execute({ sql }, done)),
  events: (tx) =>
    new Promise((resolve, reject) => callbacksOf(tx).query(sql).once("error", reject).once("end", resolve)),
  "the connection's promises": (tx) => callbacksOf(tx).promise().query(sql),
});

describeWays(
  mysql2Row,
  {
    ...byMysql2("COMMIT"),
    "changeUser()": (tx) => tx.changeUser({}),
    "reset()": (tx) => Reflect.apply(Reflect.get(tx, "reset"), tx, []),
    "beginTransaction()": (tx) => tx.beginTransaction(),
    "changeUser() of the connection": (tx) => called((done) => callbacksOf(tx).changeUser({}, done)),
  },
  byMysql2("SELECT 1"),
);

const fileOf = (text: string): string => {
  const file = path.join(testFolder(), `${text.length}.sql`);
  writeFileSync(file, text);
  return file;
};

for (const row of postgresJsRows) {
  const ways: (text: string) => Ways<TransactionSql> = (text) => ({
    "unsafe()": (tx) => tx.unsafe(text),
    "unsafe() with values": (tx) => tx.unsafe(text, []),
    "simple()": (tx) => tx.unsafe(text).simple(),
    "execute()": (tx) => tx.unsafe(text).execute(),
    "forEach()": (tx) => tx.unsafe(text).forEach(() => {}),
    "a part of another query": (tx) => tx`${tx.unsafe(text)}`,
    "a list of parts": (tx) => tx`${[tx.unsafe(text)]}`,
    "a file": (tx) => tx.file(fileOf(text)),
  });
  describeWays<TransactionSql>(
    row,
    {
      ...ways("COMMIT"),
      "a template": (tx) => tx`COMMIT`,
      "a template in a template": (tx) => tx`${tx`COM`}${tx`MIT`} ${tx`; COMMIT`}`,
      "a template behind a value": (tx) => tx`SELECT ${1}::int; COMMIT`,
      "prepare() of the transaction": (tx) => Reflect.apply(Reflect.get(tx, "prepare"), tx, ["own"]),
      "a savepoint": (tx) => tx.savepoint((inner) => inner`ROLLBACK`),
    },
    {
      ...ways("SELECT 1"),
      "parts that are no statements": (tx) => tx`SELECT CASE WHEN ${true} THEN 1 ${tx`END`} AS one`,
      "values with members of these names": (tx) =>
        tx`SELECT ${tx.json({ strings: ["; COMMIT"], args: [] })}::jsonb AS one`,
    },
  );
}

for (const row of kyselyRows) {
  type Tx = Transaction<never>;
  const ways: (text: string) => Ways<Tx> = (text) => ({
    "executeQuery()": (tx) => tx.executeQuery(CompiledQuery.raw(text)),
    "a query without plugins": (tx) => tx.withoutPlugins().executeQuery(CompiledQuery.raw(text)),
  });
  describeWays(
    row as unknown as TableRow<Tx>,
    {
      ...ways("COMMIT"),
      async "a stream"(tx) {
        const rows = tx.getExecutor().stream(CompiledQuery.raw("COMMIT"), 1);
        await rows[Symbol.asyncIterator]().next();
      },
    },
    ways("SELECT 1"),
  );
}

for (const row of typeOrmRows) {
  describeWays(row, {
    "commitTransaction()": (tx) => tx.queryRunner?.commitTransaction(),
    "rollbackTransaction()": (tx) => tx.queryRunner?.rollbackTransaction(),
    "query() of the query runner": (tx) => tx.queryRunner?.query("COMMIT"),
  });
}
