import { fromDrizzle } from "@countersign/store-sql/drizzle";
import { fromKnex } from "@countersign/store-sql/knex";
import { fromMikroOrm } from "@countersign/store-sql/mikro-orm";
import type { Database } from "@countersign/idempotency";
import { EntitySchema } from "@mikro-orm/core";
import { MikroORM } from "@mikro-orm/postgresql";
import { afterTest } from "@countersign/test-support/runs/after-test.ts";
import { describeOnPostgres } from "@countersign/test-support/servers/engines.ts";
import { expect, test } from "@jest/globals";
import { drizzle } from "drizzle-orm/node-postgres";
import knexModule from "knex";
import { type ClientBase, Pool } from "pg";
import { openStores, payerOn } from "./table/payer.ts";
import { servers } from "./table/row.ts";
import { expectWarning } from "@countersign/test-support/runs/expect-warning.ts";

const max = 2;

/** Fails the next BEGINs as those of a line that a failover has cut. */
function failing() {
  const state = { begins: 0 };
  const prepare = (client: Pick<ClientBase, "query">): void => {
    const query: (...sent: unknown[]) => unknown = client.query.bind(client);
    const queryOrFail = (...sent: unknown[]): unknown => {
      const [statement, done] = [sent[0], sent.at(-1)];
      const text = typeof statement === "string" ? statement : String(Reflect.get(Object(statement), "text"));
      if (state.begins === 0 || !/^begin\b/i.test(text)) return query(...sent);
      state.begins -= 1;
      const error = Object.assign(new Error("terminating connection"), { code: "57P01" });
      return typeof done === "function" ? Reflect.apply(done, client, [error]) : Promise.reject(error);
    };
    Reflect.set(client, "query", queryOrFail);
  };
  return { state, prepare };
}

type Prepare = ReturnType<typeof failing>["prepare"];

function poolOf(prepare: Prepare) {
  const afterCreate = (client: ClientBase, done: (error: undefined, client: ClientBase) => void): void => {
    prepare(client);
    done(undefined, client);
  };
  return { min: 0, max, afterCreate };
}

type Pay = ReturnType<typeof payerOn>;

async function payerOf<Tx>(database: Database<Tx>, handler: () => void): Promise<Pay> {
  const stores = await openStores(database);
  afterTest(() => stores.close());
  return payerOn(stores, handler);
}

const libraries: readonly (readonly [
  name: string,
  open: (prepare: Prepare, handler: () => void) => Promise<Pay>,
])[] = [
  [
    "Knex",
    (prepare, handler) => {
      const knex = knexModule.default({
        client: "pg",
        connection: servers.postgresql,
        pool: poolOf(prepare),
        log: { warn() {} },
      });
      afterTest(() => knex.destroy());
      return payerOf(fromKnex(knex), handler);
    },
  ],
  [
    "MikroORM",
    async (prepare, handler) => {
      const entity = new EntitySchema({
        name: "unused",
        properties: { id: { type: "string", primary: true } },
      });
      const pool = poolOf(prepare);
      const orm = await MikroORM.init({ entities: [entity], clientUrl: servers.postgresql, pool });
      afterTest(() => orm.close());
      return payerOf(fromMikroOrm(orm), handler);
    },
  ],
  [
    "Drizzle",
    (prepare, handler) => {
      const pool = new Pool({ connectionString: servers.postgresql, max, connectionTimeoutMillis: 2_000 });
      pool.on("connect", prepare);
      afterTest(() => pool.end());
      return payerOf(fromDrizzle(drizzle(pool)), handler);
    },
  ],
];

describeOnPostgres("a BEGIN that fails, as after a failover", () => {
  test.each(libraries)(
    "of %s is 503, begins no handler, and costs no client of the pool",
    async (_name, open) => {
      const { state, prepare } = failing();
      let handled = 0;
      const pay = await open(prepare, () => void (handled += 1));
      expect(await pay("before")).toBe(200);
      for (let left = max + 1; left > 0; left -= 1) {
        state.begins = 1;
        // oxlint-disable-next-line no-await-in-loop -- one after the other
        expect([await pay("a", "n"), handled]).toEqual(["transaction-unavailable", 1]);
      }
      expect([await pay("a", "n"), handled]).toEqual([200, 2]);
      expectWarning(/^\[transaction-unused\]/);
    },
  );
});
