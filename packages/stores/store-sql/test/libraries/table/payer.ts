import { randomUUID } from "node:crypto";
import { transactionRequests } from "@countersign/idempotency-guard/internal";
import type { AnswerStore, Database, TransactionStores } from "@countersign/idempotency";
import { createAnswers, createStores } from "@countersign/store-sql";
import type { WorkStore } from "@countersign/idempotency/work";
import { afterEach, beforeEach } from "@jest/globals";
import { createPool } from "mysql2/promise";
import { Pool } from "pg";
import { returnTables, takeTables } from "../../mysql/spare-tables.ts";
import { returnSchema, takeSchema } from "../../postgres/spare-schemas.ts";
import { type Opened, type TableRow, servers } from "./row.ts";

/** Pays once with a nonce of its own; resolves to the status, or the refusal's code. */
export function payerOn<Tx>(
  stores: TransactionStores<Tx>,
  handler: (tx: Tx, key: string) => unknown,
  times: {
    readonly idleTimeoutMs?: number;
    readonly transactionTimeoutMs?: number;
    readonly waitMs?: number;
    readonly storeTimeoutMs?: number;
  } = {},
  mustWrite?: boolean,
) {
  const { perform } = transactionRequests(stores, { scope: "payments", waitMs: 5_000, ...times });
  return async (key: string, nonce: string = randomUUID()): Promise<unknown> => {
    const claim = { scope: "s", nonce, token: randomUUID(), retainMs: 60_000 };
    const deferred = { claim, assertTimely() {}, replayed: () => codeError("nonce-replayed") };
    try {
      const handle = ({ tx }: { readonly tx: Tx }): unknown => handler(tx, key);
      const request = { key, fingerprint: () => "f", nonce: deferred, mustWrite, handle };
      const whileConnected = <T>(work: (left: AbortSignal) => Promise<T>) =>
        work(new AbortController().signal);
      const performed = await perform({}, request, { whileConnected });
      return "response" in performed ? performed.response.status : "no response";
    } catch (error) {
      return (error as { code?: unknown }).code ?? (error as Error).message;
    }
  };
}

/** Pays key after key, eight at a time, each until one is not paid. `lost` has what those were answered. */
export function payUntilLost(pay: (key: string) => Promise<unknown>, paid: unknown) {
  const keys: string[] = [];
  const answered: string[] = [];
  const payers = Array.from({ length: 8 }, async (_, payer) => {
    for (let number = 0; ; number++) {
      const key = `${payer} ${number}`;
      keys.push(key);
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      const answer = await pay(key);
      if (answer !== paid) return answer;
      answered.push(key);
    }
  });
  return { keys, answered, lost: Promise.all(payers) };
}

const undecided: ReadonlySet<unknown> = new Set(["in-flight", "transaction-unavailable"]);

/** Retries as a caller does: on a busy machine many retries at once wait longer for a connection than a transaction may. */
export async function payUntilDecided(pay: (key: string) => Promise<unknown>, key: string): Promise<unknown> {
  for (const endsAtMs = performance.now() + 60_000; ;) {
    // oxlint-disable-next-line no-await-in-loop -- one after the other
    const answer = await pay(key);
    if (!undecided.has(answer) || performance.now() > endsAtMs) return answer;
  }
}

export function sorted<T>(values: readonly T[]): T[] {
  const copy = [...values];
  copy.sort((one, other) => (String(one) < String(other) ? -1 : 1));
  return copy;
}

export type OpenStores<Tx> = TransactionStores<Tx> & {
  readonly work?: WorkStore<Tx>;
  readonly answers: AnswerStore;
  close(): Promise<void>;
};

/** Stores on tables of this test's own, which go with them. */
export async function openStores<Tx>(
  database: Database<Tx>,
  more: { readonly maxTransactions?: number } = {},
): Promise<OpenStores<Tx>> {
  if (database.dialect === "mysql") {
    const pool = createPool({ uri: servers.mysql });
    const table = await takeTables(pool);
    const options = { database, table, pruneIntervalMs: 0 };
    const stores = createStores({ ...options, ...more });
    const answers = createAnswers(options);
    return {
      ...stores,
      answers,
      async close() {
        stores.close();
        await answers.close();
        await returnTables(pool, table);
        await pool.end();
      },
    };
  }
  const pool = new Pool({ connectionString: servers.postgresql });
  const schema = await takeSchema(pool);
  const options = { database, schema, pruneIntervalMs: 0 };
  const stores = createStores({ ...options, ...more });
  const answers = createAnswers(options);
  return {
    ...stores,
    answers,
    async close() {
      stores.close();
      await answers.close();
      await returnSchema(pool, schema);
      await pool.end();
    },
  };
}

/** Opens the library and stores on it for each test, and closes them behind it. */
export function openEach<Tx>(
  row: TableRow<Tx>,
  use: (made: { readonly opened: Opened<Tx>; readonly stores: OpenStores<Tx> }) => void,
): void {
  const closing: (() => Promise<unknown>)[] = [];
  beforeEach(async () => {
    const opened = await row.open();
    closing.unshift(() => opened.end());
    const stores = await openStores(opened.database);
    closing.unshift(() => stores.close());
    use({ opened, stores });
  });
  afterEach(async () => {
    // oxlint-disable-next-line no-await-in-loop -- the stores before their library
    for (const close of closing.splice(0)) await close();
  });
}

function codeError(code: string): Error {
  return Object.assign(new Error(code), { code });
}
