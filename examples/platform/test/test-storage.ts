import { type PostgresLocation, SettingError } from "@countersign/example-settings";
import { afterTest } from "@countersign/test-support/runs/after-test.ts";
import { describe } from "@jest/globals";
import { Pool } from "pg";
import { pino } from "pino";
import { describeOnPostgres, isolatedName, postgresUrl } from "@countersign/test-support/servers/engines.ts";
import type { TaskRecord } from "@countersign/idempotency/work";
import { practiceBankRail, type BankRail } from "../src/bank-rail.ts";
import type { Acceptance, AcceptedPayout, PayoutLedger } from "../src/ledgers/payouts.ts";
import { partyLedgerOn, type PartyLedger } from "../src/ledgers/parties.ts";
import { openPayouts, type Payouts } from "../src/transfers.ts";
import { openPostgresStorage } from "../src/engines/postgres/storage.ts";
import { openSqliteStorage } from "../src/engines/sqlite.ts";
import type { GuardStores, PlatformStorage } from "../src/engines/storage.ts";

/** A storage on a clock that stands still until a test moves it, with nothing in it. */
export interface TestStorage extends PlatformStorage {
  now: number;
  readonly ledger: PayoutLedger;
  readonly parties: PartyLedger;
  /** Removes all rows of the ledgers and the keys. */
  empty(): Promise<void>;
}

export interface TestEngine {
  readonly name: string;
  readonly describe: typeof describe.skip;
  /** A storage that is open until the test has ended. */
  open(): Promise<TestStorage>;
}

export const testEngines: readonly TestEngine[] = [
  { name: "SQLite", describe, open: memoryStorage },
  { name: "PostgreSQL", describe: describeOnPostgres, open: postgresStorage },
];

const tables = [
  "payouts",
  "webhook_events",
  "buyers",
  "sellers",
  "payment_requests",
  "countersign_idempotency",
];

export function memoryStorage(): Promise<TestStorage> {
  return testStorage(openSqliteStorage({ kind: "memory" }));
}

async function postgresStorage(): Promise<TestStorage> {
  return testStorage(await openPostgresStorage(isolatedPostgres(), pino({ level: "silent" })));
}

async function testStorage(storage: PlatformStorage): Promise<TestStorage> {
  afterTest(() => storage.close());
  const { database } = storage;
  const { ledger } = await payoutsOn(storage, { now: () => opened.now });
  const opened: TestStorage = {
    ...storage,
    ledger,
    parties: partyLedgerOn(database),
    now: 1_000,
    async empty() {
      for (const table of tables) await database.query([`DELETE FROM ${database.dialect.schema}${table}`]);
    },
  };
  return opened;
}

/** A ledger on it, whose tasks and outcomes are written; who wants them done starts the workers. */
export function payoutsOn(
  storage: PlatformStorage,
  { confirmationUrl = new URL("http://127.0.0.1:9/"), rail = practiceBankRail(), now }: PayoutChanges = {},
): Promise<Payouts> {
  const settings = { confirmationUrl, confirmationApiKey: undefined };
  return openPayouts({ storage, rail, settings, logger: pino({ level: "silent" }), now });
}

interface PayoutChanges {
  readonly confirmationUrl?: URL;
  readonly rail?: BankRail | undefined;
  readonly now?: () => number;
}

/** The tasks of a queue, oldest first. */
export async function tasks(
  { work }: PlatformStorage,
  queue: "transfers" | "outcomes" | "outcomes-expected",
  state: TaskRecord["state"] = "open",
): Promise<readonly TaskRecord[]> {
  return (await work.work.list({ queue, state, limit: 100 })).tasks;
}

/** Accepts a payout in a transaction that a store opens, as the endpoint does; `after` runs before COMMIT, and may fail. */
export function accept(
  { stores, ledger }: Pick<TestStorage, "stores" | "ledger">,
  accepted: AcceptedPayout,
  after: () => void = () => {},
): Promise<Acceptance> {
  return inTransaction(stores, (tx) => {
    const acceptance = ledger.accept(accepted, tx);
    if (!(acceptance instanceof Promise)) return ended(acceptance, after);
    return (async () => ended(await acceptance, after))();
  });
}

function ended(acceptance: Acceptance, after: () => void): Acceptance {
  after();
  return acceptance;
}

/** Runs steps of a ledger in a transaction that a store opens. */
export function inTransaction<T>(
  { transactions }: GuardStores,
  work: (tx: object) => T | Promise<T>,
): Promise<T> {
  if (transactions === undefined) throw new Error("the stores share no transaction with the ledgers");
  return transactions.run(work);
}

/** A schema of its own in the database for tests, until the test has ended. */
export function isolatedPostgres(): PostgresLocation {
  if (postgresUrl === undefined) throw new Error("there is no PostgreSQL for this test");
  const schema = isolatedName("platform");
  afterTest(() => dropSchema(schema));
  return { kind: "postgres", url: postgresUrl, schema, storesSchema: schema, variable: "STORE_URL" };
}

export async function dropSchema(schema: string): Promise<void> {
  const pool = new Pool({ connectionString: postgresUrl, max: 1 });
  await pool.query(`DROP SCHEMA IF EXISTS "${schema}" CASCADE`);
  await pool.end();
}

export function payout(idempotencyKey: string, name = "Example Trading GmbH"): AcceptedPayout {
  return {
    idempotencyKey,
    businessId: "b-1",
    beneficiary: { iban: "DE89370400440532013000", bic: "COBADEFFXXX", name },
    reference: "invoice 7",
    bodyText: () => '{"amount":{"value":10.10}}',
  };
}

export async function errorOf(opening: Promise<unknown>): Promise<SettingError> {
  try {
    await opening;
  } catch (error) {
    if (error instanceof SettingError) return error;
    throw error;
  }
  throw new Error("the storage was opened");
}
