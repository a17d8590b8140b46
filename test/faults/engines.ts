// The engines on which the fault table is shown.
import { randomUUID } from "node:crypto";
import { rmSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, afterEach, beforeAll, describe } from "@jest/globals";
import Database from "libsql";
import type { RowDataPacket } from "mysql2/promise";
import { isolatedName, mysqlEngine, mysqlUrl, postgresUrl, redisUrl } from "../support/servers/engines.ts";
import { isOnMysqlAlone } from "../support/runs/share.ts";
import { startTcpProxy, type TcpProxy } from "../support/servers/tcp-proxy.ts";
import type { EngineConfig, EngineKind } from "./payer-app.mjs";
import { payoutsTable } from "./payer-engines.mjs";

// Leases have to run out, processes to start.

/** A place on one engine that no other test file uses. */
export interface Ground {
  readonly kind: EngineKind;
  /** For payers: all of one ground share keys, nonces and payouts, except that each memory store is its own. */
  readonly engine: EngineConfig;
  payments(key: string): Promise<number>;
  /** The tokens of the attempts that paid the key. */
  payers(key: string): Promise<readonly string[]>;
  close(): Promise<void>;
}

const names: Record<EngineKind, string> = {
  memory: "memory",
  sqlite: "SQLite",
  redis: "Redis",
  postgres: "PostgreSQL",
  mysql: mysqlEngine === "mysql" ? "MySQL" : "MariaDB",
};

/** The rows of `define` on each of the engines; without a server its engine is skipped, as the set-up has said. */
export function describeEngines(
  kinds: readonly EngineKind[],
  define: (ground: () => Ground, kind: EngineKind) => void,
): void {
  for (const kind of isOnMysqlAlone ? kinds.filter((each) => each === "mysql") : kinds) {
    const describeHere = isMissing(kind) ? describe.skip : describe;
    describeHere(`on ${names[kind]}`, () => {
      let ground: Ground;
      beforeAll(async () => {
        ground = await openGround(kind);
      });
      afterAll(() => ground.close());
      define(() => ground, kind);
    });
  }
}

export function newKey(): string {
  return `payout-${randomUUID()}.acc-1.acc-2`;
}

/** As a store has the key of a payout whose handler gets the transaction. */
export function storeKey(key: string): string {
  return `payout:${key}`;
}

/** Opens a ground, on the server of the machine unless another one is named. */
export async function openGround(kind: EngineKind, url?: string): Promise<Ground> {
  if (kind === "redis") return openRedis(url ?? String(redisUrl));
  if (kind === "postgres") return openPostgres(url ?? String(postgresUrl));
  if (kind === "mysql") return openMysql(url ?? String(mysqlUrl));
  return openFiles(kind);
}

const proxies: TcpProxy[] = [];

afterEach(() => Promise.all(proxies.splice(0).map((proxy) => proxy.close())));

const ports = { redis: 6379, postgres: 5432, mysql: 3306 } as const;

/** The same ground through a line of its own, which is closed with the test. */
export async function behindProxy({ engine }: Ground): Promise<{ engine: EngineConfig; proxy: TcpProxy }> {
  if (!("url" in engine)) throw new Error(`${engine.kind} has no server`);
  const url = new URL(engine.url);
  const proxy = await startTcpProxy(Number(url.port || ports[engine.kind]));
  proxies.push(proxy);
  url.port = String(proxy.port);
  return { engine: { ...engine, url: url.href }, proxy };
}

const urls: Partial<Record<EngineKind, string | undefined>> = {
  redis: redisUrl,
  postgres: postgresUrl,
  mysql: mysqlUrl,
};

function isMissing(kind: EngineKind): boolean {
  return kind in ports && urls[kind] === undefined;
}

function openFiles(kind: "memory" | "sqlite"): Ground {
  const { file, payers, remove } = temporaryLedger();
  // With the payouts of handlers that get the transaction.
  const platform = temporaryLedger();
  return {
    kind,
    engine: kind === "memory" ? { kind, payouts: file } : { kind, file: platform.file, payouts: file },
    ...counted(async (key) => [...(await payers(key)), ...(await platform.payers(key))]),
    async close() {
      remove();
      platform.remove();
    },
  };
}

async function openRedis(url: string): Promise<Ground> {
  const { createClient } = await import("redis");
  const { file, payers, remove } = temporaryLedger();
  const prefix = isolatedName("faults");
  return {
    kind: "redis",
    engine: { kind: "redis", url, prefix, payouts: file },
    ...counted(payers),
    async close() {
      remove();
      const client = createClient({ url }).on("error", () => {});
      await client.connect();
      for await (const keys of client.scanIterator({ MATCH: `*${prefix}*`, COUNT: 1_000 })) {
        if (keys.length > 0) await client.unlink(keys);
      }
      client.destroy();
    },
  };
}

async function openPostgres(url: string): Promise<Ground> {
  const { Pool } = (await import("pg")).default;
  const { migrate } = await import("@countersign/store-sql");
  const pool = new Pool({ connectionString: url, max: 2 }).on("error", () => {});
  const schema = isolatedName("faults");
  const bank = temporaryLedger();
  await pool.query(`CREATE SCHEMA ${schema}`);
  await migrate(pool, { schema });
  await pool.query(payoutsTable(`${schema}.payouts`));
  return {
    kind: "postgres",
    engine: { kind: "postgres", url, schema, payouts: bank.file },
    ...counted(async (key) => {
      const { rows } = await pool.query<Payer>(`SELECT token FROM ${schema}.payouts WHERE key = $1`, [key]);
      return [...rows, ...(await bank.payers(key))];
    }),
    async close() {
      bank.remove();
      await pool.query(`DROP SCHEMA ${schema} CASCADE`);
      await pool.end();
    },
  };
}

async function openMysql(url: string): Promise<Ground> {
  const { createPool } = await import("mysql2/promise");
  const { migrate } = await import("@countersign/store-sql");
  const { fromMysql2 } = await import("@countersign/store-sql/mysql2");
  const database = isolatedName("faults");
  const own = new URL(url);
  own.pathname = database;
  const admin = createPool({ uri: url, connectionLimit: 1 });
  await admin.query(`CREATE DATABASE ${database}`);
  const pool = createPool({ uri: own.href, connectionLimit: 2 });
  await migrate(fromMysql2(pool));
  await pool.query(payoutsTable("payouts", "`key`"));
  return {
    kind: "mysql",
    engine: { kind: "mysql", url: own.href },
    ...counted(async (key) => {
      const [rows] = await pool.query<(Payer & RowDataPacket)[]>(
        "SELECT token FROM payouts WHERE `key` = ?",
        [key],
      );
      return rows;
    }),
    async close() {
      await admin.query(`DROP DATABASE ${database}`);
      await Promise.all([pool.end(), admin.end()]);
    },
  };
}

interface Payer {
  readonly token: string;
}

function counted(payers: (key: string) => Promise<readonly Payer[]>): Pick<Ground, "payers" | "payments"> {
  return {
    payers: async (key) => (await payers(key)).map(({ token }) => token),
    payments: async (key) => (await payers(key)).length,
  };
}

function temporaryLedger() {
  const folder = mkdtempSync(path.join(tmpdir(), "countersign-faults-"));
  const file = path.join(folder, "platform.db");
  // Here, and not by the payers: of several processes that change the journal at once, some fail.
  const ledger = new Database(file);
  ledger.exec("PRAGMA journal_mode = WAL");
  ledger.exec(payoutsTable("payouts"));
  ledger.close();
  return {
    file,
    async payers(key: string): Promise<readonly Payer[]> {
      const database = new Database(file);
      try {
        database.exec("PRAGMA busy_timeout = 5000");
        return database.prepare("SELECT token FROM payouts WHERE key = ?").all(key) as Payer[];
      } finally {
        database.close();
      }
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}
