import {
  createMariadbStores,
  withTransaction,
  type MariadbStores,
  type MariadbTransaction,
} from "@countersign/example-custom-store";
import type { IdempotencyStoreHarness, NonceStoreHarness } from "@countersign/store-contract";
import { createPool } from "mysql2/promise";
import type { MariadbServer } from "./server/mariadb-server.mjs";
import { giveTablesBack, refuseRows, takeTables } from "./tables.ts";

export interface Setting {
  readonly url: string;
  readonly hasClock?: boolean | undefined;
  /** Of this URL, one that a case may stop. */
  readonly server?: MariadbServer | undefined;
}

/** Stores on tables that are empty and that no other case uses meanwhile. */
async function makeStores({ url, hasClock = false, server }: Setting) {
  const payments = createPool({ uri: url });
  const prefix = await takeTables(url, payments);
  let nowMs = 1_800_000_000_000;
  const made: MariadbStores[] = [];
  const another = (): MariadbStores => {
    const clock = hasClock ? { now: () => nowMs } : {};
    const stores = createMariadbStores({ uri: url, prefix, pruneIntervalMs: 0, ...clock });
    made.push(stores);
    return stores;
  };
  return {
    stores: another(),
    another,
    payments,
    harness: {
      ...(hasClock ? { advance: (ms: number) => void (nowMs += ms) } : {}),
      ...(server === undefined
        ? {}
        : { engine: { stop: () => server.kill(), start: () => server.start(), durable: true } }),
      fill: () => refuseRows(payments, prefix),
      async close() {
        await Promise.all(made.map((stores) => stores.close()));
        await giveTablesBack(url, payments, prefix);
        await payments.end();
      },
    },
  };
}

export async function idempotencyHarness(
  setting: Setting,
): Promise<IdempotencyStoreHarness<MariadbTransaction>> {
  const { stores, another, payments, harness } = await makeStores(setting);
  return {
    ...harness,
    store: stores.idempotency,
    another: () => another().idempotency,
    transaction: (work) => withTransaction(payments, async (connection) => work(connection)),
  };
}

export async function nonceHarness(setting: Setting): Promise<NonceStoreHarness> {
  const { stores, another, harness } = await makeStores(setting);
  return { ...harness, store: stores.nonces, another: () => another().nonces };
}
