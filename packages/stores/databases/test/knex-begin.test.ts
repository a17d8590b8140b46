import { fromKnex } from "@countersign/databases";
import { afterTest } from "@countersign/test-support/runs/after-test.ts";
import { describeOnPostgres } from "@countersign/test-support/servers/engines.ts";
import { expect, test } from "@jest/globals";
import knexModule from "knex";
import { openStores, payerOn } from "./table/payer.ts";
import { servers } from "./table/row.ts";

interface Connection {
  query(statement: { readonly text?: string }, done: (error: Error) => void): unknown;
}

describeOnPostgres("a BEGIN of Knex that fails, as after a failover", () => {
  test("is 503, not a mistake of the app's, and no handler begins", async () => {
    let isFailing = true;
    const knex = knexModule.default({
      client: "pg",
      connection: servers.postgresql,
      pool: {
        min: 0,
        max: 2,
        afterCreate(connection: Connection, done: (error: undefined, connection: Connection) => void) {
          const { query } = connection;
          connection.query = function queryOrFail(...sent) {
            if (!isFailing || sent[0].text !== "BEGIN;") return Reflect.apply(query, connection, sent);
            isFailing = false;
            return sent[1](Object.assign(new Error("terminating connection"), { code: "57P01" }));
          };
          done(undefined, connection);
        },
      },
    });
    afterTest(() => knex.destroy());
    const stores = await openStores(fromKnex(knex));
    afterTest(() => stores.close());
    let handled = 0;
    const pay = payerOn(stores, () => void (handled += 1));
    // Before any payment the stores prove by a transaction that the library opens some.
    await stores.transactions.run(() => {}).catch(() => {});
    isFailing = true;
    expect([await pay("a", "n"), handled]).toEqual(["transaction-unavailable", 0]);
    expect([await pay("a", "n"), handled]).toEqual([200, 1]);
  });
});
