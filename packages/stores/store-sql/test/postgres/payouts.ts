import { fromPg } from "@countersign/store-sql/pg";
import type {
  Database,
  SqlValue,
  TransactionBegun,
  TransactionClaim,
  TransactionKey,
  TransactionStore,
} from "@countersign/idempotency";
import { type PostgresDatabaseOptions, type Stores, createStores } from "@countersign/store-sql";
import { afterTest } from "@countersign/test-support/runs/after-test.ts";
import { expect } from "@jest/globals";
import { Client, type Pool, type PoolClient, type PoolConfig } from "pg";
import { connectPool, createSchema } from "./connections.ts";

export interface Payouts extends Stores<PoolClient> {
  readonly pool: Pool;
  readonly schema: string;
  /** Writes a payout in the transaction. */
  readonly write: (tx: PoolClient, id: string) => Promise<void>;
  /** The ids that have committed, sorted. */
  readonly paid: () => Promise<string[]>;
  /** Stores of another process, on the same tables. */
  readonly another: (
    options?: Partial<PostgresDatabaseOptions<PoolClient>>,
    config?: PoolConfig,
  ) => Stores<PoolClient>;
}

/** Stores with transactions beside a table of payouts, which takes an id as often as it comes. */
export async function newPayouts(
  options: Partial<PostgresDatabaseOptions<PoolClient>> = {},
  config?: PoolConfig,
): Promise<Payouts> {
  const pool = connectPool({ max: 20 });
  const schema = await createSchema(pool);
  await pool.query(
    `CREATE TABLE ${schema}.payouts (id text, late text UNIQUE DEFERRABLE INITIALLY DEFERRED)`,
  );
  const another: Payouts["another"] = (more = {}, itsConfig = config) => {
    const database = more.database ?? fromPg(connectPool({ max: 20, ...itsConfig }));
    const made = createStores({ schema, pruneIntervalMs: 0, ...more, database: inOrder(database) });
    afterTest(() => made.close());
    return made;
  };
  return {
    ...another(options),
    pool,
    schema,
    another,
    write: async (tx, id) => void (await tx.query(`INSERT INTO ${schema}.payouts (id) VALUES ($1)`, [id])),
    async paid() {
      const { rows } = await pool.query<{ id: string }>(`SELECT id FROM ${schema}.payouts ORDER BY id`);
      return rows.map(({ id }) => id);
    },
  };
}

/** Sends a text that a handler's `tx` does not take: what a store does when one gets through all the same. */
export async function pastGate(tx: PoolClient, text: string): Promise<void> {
  await Reflect.apply(Client.prototype.query, tx, [text]);
}

let tokens = 0;

export function keyOf(key: string): TransactionKey {
  return { key, token: `token ${tokens++}`, fingerprint: `f of ${key.slice(0, 100)}` };
}

export function claimOf(
  keys: readonly TransactionKey[],
  more: Partial<TransactionClaim> = {},
): TransactionClaim {
  return { keys, recovery: "rerun", leaseMs: 60_000, waitMs: 5_000, idleTimeoutMs: 60_000, ...more };
}

export function nonceOf(nonce: string) {
  return { scope: "s", nonce, token: `token ${tokens++}`, retainMs: 60_000 };
}

/** As a payment runs: begins, works if the key was begun, keeps; rolls back on a seen nonce. */
export async function payIn(
  transactions: TransactionStore<PoolClient>,
  claim: TransactionClaim,
  work: (tx: PoolClient) => Promise<unknown>,
): Promise<TransactionBegun> {
  let begun: TransactionBegun | undefined;
  try {
    return await transactions.run(async (tx) => {
      begun = await transactions.begin(tx, claim);
      if (begun.nonce === "seen") throw new Error("seen");
      if (begun.keys.every(({ status }) => status !== "begun")) return begun;
      await work(tx);
      const { keys } = begun;
      const own = claim.keys.filter((_key, index) => keys[index]?.status === "begun");
      await transactions.keep(tx, own, false);
      return begun;
    });
  } catch (error) {
    if (begun?.nonce === "seen") return begun;
    throw error;
  }
}

const refusal = new Error("the handler refuses");

/** As a payment that is refused by its handler: all of it is rolled back, and nothing of it is found to have committed. */
export async function refuseIn(
  transactions: TransactionStore<PoolClient>,
  claim: TransactionClaim,
  work: (tx: PoolClient) => Promise<unknown>,
): Promise<void> {
  const run = transactions.run(async (tx) => {
    await transactions.begin(tx, claim);
    await work(tx);
    await transactions.assertOpen(tx, claim.keys);
    throw refusal;
  });
  await expect(run).rejects.toBe(refusal);
  expect(await transactions.hold(claim.keys, "transaction-broken")).toEqual(new Set());
}

/** As what begins keys and runs no handler: the nonce stays, the keys are free. */
export async function giveBackIn(
  transactions: TransactionStore<PoolClient>,
  claim: TransactionClaim,
): Promise<void> {
  await transactions.run(async (tx) => {
    await transactions.begin(tx, claim);
    await transactions.free(tx, claim.keys);
  });
}

/** A database whose library sends single statements. */
export function singly<Tx>({ script: _script, ...database }: Database<Tx>): Database<Tx> {
  return database;
}

/** Refuses statements that a library with `?` could not send: each placeholder comes once and in order. */
export function inOrder<Tx>(database: Database<Tx>): Database<Tx> {
  return {
    ...database,
    alone(text: string, values: readonly SqlValue[]) {
      const found = [...text.matchAll(/\$(\d+)/g)].map(([, number]) => Number(number));
      expect(found).toEqual(values.map((_value, index) => index + 1));
      return database.alone(text, values);
    },
  };
}

/** Both kinds of libraries, made of one. */
export const libraries: readonly [string, (database: Database<PoolClient>) => Database<PoolClient>][] = [
  ["a library that sends scripts", (database) => database],
  ["a library that sends single statements", singly],
];
