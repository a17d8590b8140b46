import { fileURLToPath } from "node:url";
import { claimOf, keyOf } from "../postgres/payouts.ts";
import { type StandbyServer, startStandbyServer } from "../postgres/waiting-commits.ts";
import { postgresUrl } from "@countersign/test-support/servers/engines.ts";
import {
  generatePrismaClient,
  type GeneratedClient,
} from "@countersign/test-support/servers/prisma-client.ts";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { drizzleOnPostgresql } from "./table/drizzle.ts";
import { knexRows } from "./table/knex.ts";
import { kyselyRow } from "./table/kysely.ts";
import { mikroOrmOnPostgresql } from "./table/mikro-orm.ts";
import { type OpenStores, openEach, payerOn } from "./table/payer.ts";
import { pgRow } from "./table/pg.ts";
import { postgresJsRow } from "./table/postgres-js.ts";
import { loadPrismaClient, type PrismaClientClass, prismaRow } from "./table/prisma.ts";
import { type Opened, servers, type TableRow } from "./table/row.ts";
import { sequelizeRows } from "./table/sequelize.ts";
import { typeOrmRows } from "./table/typeorm.ts";

const server = postgresUrl === undefined ? undefined : await startStandbyServer();
const onServer = server === undefined ? describe.skip : describe;
const url = server?.url ?? "";
// For the rows, which read it when they open.
servers.postgresql = url;

const claim = { token: "a", fingerprint: "f", leaseMs: 60_000, recovery: "hold" } as const;
const unconfirmed = expect.objectContaining({ code: "08007" });

afterAll(() => server?.close());

/** What a library makes of a commit whose wait for the standby is cancelled, as the server answers it with success. */
function describeCancelled<Tx>(row: TableRow<Tx>): void {
  onServer(`a commit by ${row.name} that is cancelled while it waits for a standby`, () => {
    let opened: Opened<Tx>;
    let stores: OpenStores<Tx>;
    const standby = server as StandbyServer;

    // Before the tables are dropped, which is a commit too.
    afterEach(() => standby.leaveStandby());
    openEach(row, (made) => ({ opened, stores } = made));
    beforeEach(() => standby.loseStandby());

    /** Cancels the wait of the step's first commit. Where the library hides that, a second one waits: its session is lost with the server. */
    async function cancelled<T>(step: () => Promise<T>): Promise<unknown> {
      const settled = step().catch((error: unknown) => error);
      const first = await standby.cancelWait();
      if (opened.database.tellsUnconfirmed !== true) await standby.terminate(await standby.nextWait(first));
      return settled;
    }

    const pay = (key: string) => payerOn(stores, (tx, id) => opened.insertByHandler(tx, id))(key);

    test("is no confirmed payment, nor is it one to its duplicates, until the standby is there", async () => {
      expect(await cancelled(() => pay("k"))).toBe("commit-unknown");
      expect(await cancelled(() => pay("k"))).toBe("commit-unknown");
      const duplicate = pay("k");
      await standby.leaveStandby();
      expect(await duplicate).toBe("already-processed");
      expect(await opened.countRows()).toBe(1);
    });

    test("rejects as an unknown outcome", async () => {
      const keys = [keyOf("k")];
      const { transactions } = stores;
      const paying = () =>
        transactions.run(async (tx) => {
          await transactions.begin(tx, claimOf(keys));
          await opened.database.query(tx, `INSERT INTO ${opened.table} (id) VALUES ('k')`, []);
          await transactions.keep(tx, keys, false);
        });
      const error = await cancelled(paying);
      expect(error).toEqual(unconfirmed);
      expect(transactions.faultOf(error)).toBe("unavailable");
    });

    test("is no claim, no completion, and no done key", async () => {
      const { idempotency } = stores;
      expect(await cancelled(async () => idempotency.claim("k", claim))).toEqual(unconfirmed);
      await standby.leaveStandby();
      expect(await idempotency.claim("k", claim)).toMatchObject({ status: "acquired" });
      await standby.loseStandby();
      expect(await cancelled(async () => idempotency.complete("k", "a"))).toEqual(unconfirmed);
      expect(await cancelled(async () => idempotency.complete("k", "a"))).toEqual(unconfirmed);
      expect(await cancelled(async () => idempotency.read("k"))).toEqual(unconfirmed);
      const read = Promise.resolve(idempotency.read("k"));
      await standby.leaveStandby();
      expect(await read).toMatchObject({ state: "done" });
    });
  });
}

let generated: GeneratedClient;
let PrismaClient: PrismaClientClass;

beforeAll(async () => {
  generated = await generatePrismaClient(fileURLToPath(new URL("prisma/schema.prisma", import.meta.url)));
  PrismaClient = await loadPrismaClient(generated.folder);
});
afterAll(() => generated.remove());

describeCancelled(pgRow(url));
describeCancelled(drizzleOnPostgresql);
for (const row of knexRows) ofPostgres(row);
for (const row of typeOrmRows) ofPostgres(row);
for (const row of sequelizeRows) ofPostgres(row);
describeCancelled(kyselyRow("postgresql", url));
const [mikroOrm] = mikroOrmOnPostgresql;
if (mikroOrm !== undefined) describeCancelled(mikroOrm);
describeCancelled(postgresJsRow("postgres.js", {}, url));
describeCancelled(prismaRow(() => PrismaClient, {}));

function ofPostgres<Tx>(row: TableRow<Tx>): void {
  if (row.engine === "postgresql") describeCancelled(row);
}
