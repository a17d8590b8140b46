import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { fromPrisma } from "@countersign/store-sql/prisma";
import { isWhole } from "@countersign/test-support/runs/share.ts";
import {
  generatePrismaClient,
  type GeneratedClient,
} from "@countersign/test-support/servers/prisma-client.ts";
import { describeAll } from "./table/describe-all.ts";
import { barrier, statesOf } from "./table/describe-database.ts";
import { loadPrismaClient, openPrisma, type PrismaClientClass, prismaRow } from "./table/prisma.ts";
import { poolSize } from "./table/row.ts";

type PrismaTransactionOptions = NonNullable<Parameters<typeof fromPrisma>[1]>;

let generated: GeneratedClient;
let PrismaClient: PrismaClientClass;

beforeAll(async () => {
  generated = await generatePrismaClient(fileURLToPath(new URL("prisma/schema.prisma", import.meta.url)));
  PrismaClient = await loadPrismaClient(generated.folder);
});
afterAll(() => generated.remove());

const rows = [false, true].map((isExtended) => prismaRow(() => PrismaClient, { isExtended }));
for (const row of rows) describeAll(row);

describe("fromPrisma", () => {
  test("rolls back when Prisma's own time-out ends the transaction", async () => {
    await withPrisma({ timeout: 100 }, async ({ database, insertByHandler, countRows }) => {
      const running = database.run(async (tx) => {
        await insertByHandler(tx, "payment");
        // Sent again until Prisma refuses: its timer decides.
        for (;;)
          // oxlint-disable-next-line no-await-in-loop -- one after the other
          await database.query(tx, "SELECT pg_sleep(0.05)::text", []);
      });
      const error = await running.catch((caught: unknown) => caught);
      expect(statesOf(error)).toContain("P2028");
      expect(await countRows()).toBe(0);
    });
  });

  test("refuses what ends the transaction in each kind of raw call, and sends nothing", async () => {
    await withPrisma({}, async ({ database, insertByHandler, countRows }) => {
      const raw = { strings: ["COMMIT"], values: [] };
      const calls: readonly (readonly [string, ...unknown[]])[] = [
        ["$executeRaw", Object.assign(["COMMIT"], { raw: ["COMMIT"] })],
        ["$queryRaw", Object.assign(["COMMIT"], { raw: ["COMMIT"] })],
        ["$queryRaw", Object.assign(["SELECT ", "; ROLLBACK"], { raw: [] }), 1],
        ["$queryRaw", Object.assign(["", ""], { raw: [] }), raw],
        ["$executeRaw", raw],
        ["$queryRawTyped", { sql: "COMMIT", values: [] }],
        ["$queryRawUnsafe", "SELECT 1; COMMIT"],
        ["$executeRawUnsafe", "COMMIT"],
        ["$executeRaw", {}],
      ];
      const failure = new Error("the handler fails");
      const run = database.run(async (tx) => {
        await insertByHandler(tx, "payment");
        const send = async (name: string, ...values: readonly unknown[]): Promise<unknown> =>
          Reflect.apply(Reflect.get(tx, name), tx, values);
        for (const call of calls) {
          // oxlint-disable-next-line no-await-in-loop -- one statement after the other
          await expect(send(...call)).rejects.toThrow(/^Prisma: .*(?:not the handler's|cannot be read)/);
        }
        const values = [{ strings: ["; COMMIT"], sql: "COMMIT" }, 2];
        const template = Object.assign(["SELECT ", "::jsonb AS one, ", "::int AS two"], { raw: [] });
        expect(await send("$queryRaw", template, ...values)).toMatchObject([{ two: 2 }]);
        throw failure;
      });
      await expect(run).rejects.toBe(failure);
      expect(await countRows()).toBe(0);
    });
  });

  test("lets the caller recognise a serialization failure of the handler's own write", async () => {
    await withPrisma({}, async ({ database, table }) => {
      await database.alone(`INSERT INTO ${table} (id) VALUES ('a')`, []);
      const running = database.run(async (tx) => {
        await database.query(tx, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ", []);
        await database.query(tx, `SELECT id FROM ${table}`, []);
        await database.alone(`UPDATE ${table} SET parent = 'a'`, []);
        await tx.payment.updateMany({ data: { parent: null } });
      });
      const error = await running.catch((caught: unknown) => caught);
      expect(statesOf(error)).toEqual(expect.arrayContaining(["P2034", "40001"]));
    });
  });

  test("rejects a COMMIT after Prisma's own time-out", async () => {
    await withPrisma({ timeout: 100 }, async ({ database, insertByHandler, countRows }) => {
      const running = database.run(async (tx) => {
        await insertByHandler(tx, "payment");
        await new Promise((resolve) => setTimeout(resolve, 500));
      });
      const error = await running.catch((caught: unknown) => caught);
      expect(statesOf(error)).toContain("P2028");
      expect(await countRows()).toBe(0);
    });
  });

  test("rejects without running the work when no connection is free within maxWait", async () => {
    await withPrisma({ maxWait: 200 }, async ({ database, prisma, countRows }) => {
      const patient = fromPrisma(prisma, { maxWait: 30_000 });
      const all = barrier(poolSize + 1);
      const allBegun = barrier(poolSize + 1);
      const busy = Array.from({ length: poolSize }, () =>
        patient.run(async () => {
          void allBegun();
          await all();
        }),
      );
      await allBegun();
      const refused = await database.run(async () => {}).catch((caught: unknown) => caught);
      void all();
      await Promise.all(busy);
      expect(statesOf(refused)).toContain("P2028");
      expect(await countRows()).toBe(0);
    });
  });

  if (isWhole) {
    test("outlives Prisma's default of five seconds", async () => {
      await withPrisma({}, async ({ database, insertByHandler, countRows }) => {
        await database.run(async (tx) => {
          await database.query(tx, "SELECT pg_sleep(5.5)::text", []);
          await insertByHandler(tx, "payment");
        });
        expect(await countRows()).toBe(1);
      });
    });
  }

  test("refuses a transaction, another engine and times that are no milliseconds", async () => {
    await withPrisma({}, async ({ database, prisma }) => {
      await database.run(async (tx) => {
        // @ts-expect-error -- as a caller without types
        expect(() => fromPrisma(tx)).toThrow(TypeError);
      });
      expect(() => fromPrisma(prisma, { timeout: 0 })).toThrow("fromPrisma: timeout");
      expect(() => fromPrisma(prisma, { maxWait: Number.NaN })).toThrow("fromPrisma: maxWait");
      const on = (provider: string) => Object.assign(Object.create(prisma), { _activeProvider: provider });
      expect(() => fromPrisma(on("mysql"))).toThrow("got mysql");
      expect(() => fromPrisma(on("sqlite"))).toThrow("got sqlite: on SQLite transactions are synchronous");
    });
  });
});

type Prisma = Awaited<ReturnType<typeof openPrisma>>;

async function withPrisma(
  options: PrismaTransactionOptions,
  work: (opened: Prisma) => Promise<void>,
): Promise<void> {
  const opened = await openPrisma(PrismaClient, { options });
  try {
    await work(opened);
  } finally {
    await opened.end();
  }
}
