// The databases of the soak of the inbox and of outcomes: what a platform process writes, and what the judge reads.
import { databases } from "../databases.mjs";

const tables = {
  applied: { columns: "place, entity VARCHAR(64) NOT NULL, number INTEGER NOT NULL" },
  settled: { columns: "idempotency_key VARCHAR(128) PRIMARY KEY" },
};

/** `open` gives `stores`, `apply(tx, entity, number)`, `settle(tx, key)`; `inspect` what they wrote. */
export const engines = Object.fromEntries(
  Object.entries(databases).map(([name, { needs, prepare, open, remove }]) => [
    name,
    {
      needs,
      prepare: (where) => prepare(where, tables),
      async open(location) {
        const { stores, write } = await open(location, 8);
        return {
          stores,
          apply: (tx, entity, number) => write(tx, "applied", { entity, number }),
          settle: (tx, key) => write(tx, "settled", { idempotency_key: key }),
        };
      },
      async inspect(location) {
        const opened = await open(location, 2);
        return {
          work: opened.stores.work,
          applied: () => opened.read("applied", "ORDER BY place"),
          settled: async () => (await opened.read("settled")).map((row) => row.idempotency_key),
          async close() {
            await remove(location, opened);
            await opened.close();
          },
        };
      },
    },
  ]),
);
