// Both modes on one table of a server, with operators, pruning and lines that are cut; invariants as in docs/architecture.md.
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { fromMysql2, fromPg } from "@countersign/databases";
import type { IdempotencyRecord, TransactionStores } from "@countersign/idempotency";
import { GuardError, isGuardError } from "@countersign/core";
import { answerOf, type OpenTransaction, type Steps, Transactor } from "@countersign/idempotency/door";
import { createMysqlStores, migrateMysql } from "@countersign/store-mysql";
import { createPostgresStores, migratePostgres, withPostgresTransaction } from "@countersign/store-postgres";
import { expect, test } from "@jest/globals";
import { createPool, type PoolConnection, type RowDataPacket } from "mysql2/promise";
import { Pool, type PoolClient } from "pg";
import { afterTest } from "../support/runs/after-test.ts";
import {
  describeOnMysql,
  describeOnPostgres,
  isolatedName,
  mysqlUrl,
  postgresUrl,
} from "../support/servers/engines.ts";

const durationMs = 8_000;
const leaseMs = 60;
const fingerprint = "f";

/** Two processes on one table, each with its own connections. */
interface Ground<Tx> {
  readonly stores: readonly [TransactionStores<Tx>, TransactionStores<Tx>];
  insert(tx: Tx, key: string): unknown;
  /** Payment and completeIn() in one transaction; rejects when the key is lost. */
  payUnderLease(by: 0 | 1, key: string, token: string): Promise<unknown>;
  paid(key: string): Promise<number>;
  /** Ends a connection. */
  cut(): Promise<unknown>;
}

const refusal = new GuardError({ status: 400, code: "refused", message: "refused" });

const below = (count: number): number => Math.floor(Math.random() * count);
const chance = (percent: number): boolean => below(100) < percent;

async function keepsItsWord<Tx>(ground: Ground<Tx>): Promise<ReadonlySet<string>> {
  const endsAt = performance.now() + durationMs;
  const keys: string[] = [];
  const nonces: string[] = [];
  const finals = new Map<string, number>();
  const decided: { readonly key: string; readonly fence: number }[] = [];
  const seen = new Set<string>();
  const broken: string[] = [];
  const times = {
    waitMs: 100,
    storeTimeoutMs: 2_000,
    idleTimeoutMs: 300,
    transactionTimeoutMs: 60_000,
    maxWaiters: 100,
    retryAfterSeconds: 1,
  };
  const transactors = ground.stores.flatMap((stores) =>
    (["rerun", "hold"] as const).map((recovery) => new Transactor(stores, { ...times, recovery })),
  );

  const someKey = (): string => {
    if (keys.length === 0 || chance(15)) keys.push(`key ${randomUUID()}`);
    return keys[Math.max(0, keys.length - 1 - below(6))] ?? "";
  };
  const note = async (what: string, key: string): Promise<void> => {
    seen.add(what);
    const says = what.startsWith("paid") || what === "done";
    if (says && (await ground.paid(key)) !== 1) broken.push(`I2: ${key} is said to be ${what}`);
  };

  const inTransaction = async (): Promise<void> => {
    const key = someKey();
    const isCopy = nonces.length > 0 && chance(25);
    const nonce = isCopy ? (nonces.at(-1 - below(Math.min(4, nonces.length))) ?? "") : randomUUID();
    if (!isCopy) nonces.push(nonce);
    const own = { key, token: randomUUID(), fingerprint };
    const claim = { scope: "s", nonce, token: randomUUID(), retainMs: 60_000 };
    const [refuses, pauseMs] = [chance(30), chance(20) ? below(60) : 0];
    const transactor = transactors[below(4)]!;
    const run = (): Promise<string> =>
      transactor.run(
        { keys: [own], nonce: claim },
        function* steps({ tx, begun }: OpenTransaction<Tx>): Steps<string> {
          const [state] = begun.keys;
          if (state?.status !== "begun") return state?.status ?? "none";
          const behind = yield* transactor.behindSavepoint(tx, [own], false, function* pay() {
            yield* answerOf(ground.insert(tx, key));
            if (pauseMs > 0) yield* answerOf(sleep(pauseMs));
            if (refuses) throw refusal;
          });
          return "value" in behind ? "paid" : "refused";
        },
      );
    const ended = await run().catch((error: unknown) => {
      if (isGuardError(error) && error.status === 400) return "refused";
      throw error;
    });
    if (ended === "paid" || ended === "refused" || ended === "done") {
      finals.set(nonce, (finals.get(nonce) ?? 0) + 1);
    }
    await note(ended, key);
  };

  const underLease = async (): Promise<void> => {
    const key = someKey();
    const by = below(2) === 0 ? 0 : 1;
    const { idempotency } = ground.stores[by];
    const token = randomUUID();
    const recovery = chance(50) ? "rerun" : "hold";
    const { status } = await idempotency.claim(key, { token, fingerprint, leaseMs, recovery });
    if (status !== "acquired") return note(status, key);
    await sleep(chance(40) ? leaseMs + below(2 * leaseMs) : below(20));
    if (chance(20)) return note(`release: ${await idempotency.release(key, token)}`, key);
    if (chance(20)) return note("left", key);
    await ground.payUnderLease(by, key, token);
    return note("paid under a lease", key);
  };

  const settle = async (key: string): Promise<void> => {
    const { idempotency } = ground.stores[below(2)]!;
    const record: IdempotencyRecord | undefined = await idempotency.read(key);
    if (record?.state !== "held" && record?.state !== "run") return;
    const { fence } = record;
    const outcome = (await ground.paid(key)) > 0 ? "done" : "released";
    if ((await idempotency.resolve(key, outcome, { fence })) !== "ok") return;
    seen.add(`resolved ${outcome}`);
    decided.push({ key, fence });
  };

  const operate = async (): Promise<void> => {
    const last = decided.at(-1 - below(Math.min(3, Math.max(1, decided.length))));
    if (last === undefined || chance(60)) return settle(someKey());
    const { idempotency } = ground.stores[below(2)]!;
    return note(`reopen: ${await idempotency.reopen(last.key, { fence: last.fence })}`, last.key);
  };

  const work = async (): Promise<void> => {
    while (performance.now() < endsAt) {
      const dice = below(100);
      const step =
        dice < 50
          ? inTransaction
          : dice < 85
            ? underLease
            : dice < 96
              ? operate
              : dice < 98
                ? prune
                : ground.cut;
      // What is cut off, or finds a lock, fails; what it left is judged below.
      await step().catch((error: unknown) => seen.add(`failed: ${String(Object(error).code)}`));
    }
  };
  const prune = async (): Promise<unknown> => ground.stores[below(2)]!.idempotency.prune();
  await Promise.all(Array.from({ length: 10 }, work));

  await sleep(4 * leaseMs);
  for (const key of keys) {
    for (let tries = 0; tries < 3; tries += 1) await settle(key);
    const paid = await ground.paid(key);
    const record = await ground.stores[0].idempotency.read(key);
    if (paid > 1) broken.push(`I1: ${key} was paid ${paid} times`);
    if ((record?.state === "done") !== (paid === 1))
      broken.push(`I17: ${key} is ${record?.state}, ${paid} paid`);
  }
  for (const [nonce, count] of finals) if (count > 1) broken.push(`I18: ${nonce} had ${count} answers`);
  expect(broken).toEqual([]);
  return seen;
}

// What has to have happened, or the run says nothing.
const usual = [
  "failed: transaction-unavailable",
  "paid",
  "refused",
  "done",
  "held",
  "in-flight",
  "nonce-seen",
  "paid under a lease",
  "failed: lost",
  "release: ok",
  "resolved released",
  "reopen: ok",
  "reopen: not-decided",
];
const lost = Object.assign(new Error("completeIn: lost"), { code: "lost" });

describeOnPostgres("createPostgresStores", () => {
  test("both modes pay each key once", async () => {
    const schema = isolatedName("modes");
    const admin = new Pool({ connectionString: postgresUrl, max: 8 });
    await admin.query(`CREATE SCHEMA "${schema}"`);
    afterTest(async () => {
      await admin.query(`DROP SCHEMA "${schema}" CASCADE`);
      await admin.end();
    });
    await migratePostgres(admin, { schema });
    await admin.query(`CREATE TABLE "${schema}".payments (key text NOT NULL)`);
    const open = () => {
      const pool = new Pool({ connectionString: postgresUrl, max: 10, application_name: schema });
      pool.on("error", () => {});
      const stores = createPostgresStores({ database: fromPg(pool), schema, pruneIntervalMs: 0 });
      afterTest(() => pool.end());
      return { pool, stores };
    };
    const processes = [open(), open()] as const;
    const insert = (tx: Pick<PoolClient, "query">, key: string): Promise<unknown> =>
      tx.query(`INSERT INTO "${schema}".payments VALUES ($1)`, [key]);
    const seen = await keepsItsWord({
      stores: [processes[0].stores, processes[1].stores],
      insert,
      payUnderLease: (by, key, token) =>
        withPostgresTransaction(processes[by].pool, async (client) => {
          const ended = await processes[by].stores.idempotency.completeIn?.(client, key, token);
          if (ended !== "ok") throw lost;
          await insert(client, key);
          return ended;
        }),
      async paid(key) {
        const { rows } = await admin.query(`SELECT 1 FROM "${schema}".payments WHERE key = $1`, [key]);
        return rows.length;
      },
      cut: () =>
        admin.query(
          "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1 ORDER BY random() LIMIT 1",
          [schema],
        ),
    });
    expect([...seen]).toEqual(expect.arrayContaining(usual));
  }, 60_000);
});

describeOnMysql("createMysqlStores", () => {
  test("both modes pay each key once", async () => {
    const name = isolatedName("modes");
    const admin = createPool({ uri: mysqlUrl ?? "", connectionLimit: 8 });
    await admin.query(`CREATE DATABASE ${name}`);
    afterTest(async () => {
      await admin.query(`DROP DATABASE ${name}`);
      await admin.end();
    });
    const open = () => {
      const pool = createPool({ uri: mysqlUrl ?? "", database: name, connectionLimit: 10 });
      const database = fromMysql2(pool);
      afterTest(() => pool.end());
      return { database, stores: createMysqlStores({ database, pruneIntervalMs: 0 }) };
    };
    const processes = [open(), open()] as const;
    await migrateMysql(processes[0].database);
    await admin.query(`CREATE TABLE ${name}.payments (\`key\` VARCHAR(60) NOT NULL)`);
    const insert = (tx: Pick<PoolConnection, "query">, key: string): Promise<unknown> =>
      tx.query(`INSERT INTO ${name}.payments VALUES (?)`, [key]);
    const seen = await keepsItsWord({
      stores: [processes[0].stores, processes[1].stores],
      insert,
      payUnderLease: (by, key, token) =>
        processes[by].database.run(async (tx) => {
          const ended = await processes[by].stores.idempotency.completeIn(tx, key, token);
          if (ended !== "ok") throw lost;
          await insert(tx, key);
          return ended;
        }),
      async paid(key) {
        const [rows] = await admin.query<RowDataPacket[]>(
          `SELECT 1 FROM ${name}.payments WHERE \`key\` = ?`,
          [key],
        );
        return rows.length;
      },
      async cut() {
        const [[line]] = await admin.query<RowDataPacket[]>(
          "SELECT id FROM information_schema.PROCESSLIST WHERE db = ? ORDER BY RAND() LIMIT 1",
          [name],
        );
        return admin.query(`KILL ${line?.["id"]}`);
      },
    });
    expect([...seen]).toEqual(expect.arrayContaining(usual));
  }, 60_000);
});
