import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Awaitable, IdempotencyStore } from "@countersign/idempotency";
import { fromMysql2 } from "@countersign/store-sql/mysql2";
import { fromPg } from "@countersign/store-sql/pg";
import { createStores, migrate, type SqliteNonceStore } from "@countersign/store-sql";
import { createRedisStores } from "@countersign/store-redis";
import type { NewTask, OwnedTask, WorkStore, WorkStores } from "@countersign/idempotency/work";

import { afterEach, beforeEach, describe } from "@jest/globals";
import Database from "libsql";
import { createPool } from "mysql2/promise";
import { Pool } from "pg";
import { createClient } from "redis";
import {
  describeOnMysql,
  describeOnPostgres,
  describeOnRedis,
  isolatedName,
  mysqlUrl,
  postgresUrl,
  redisUrl,
} from "@countersign/test-support/servers/engines.ts";
import { isOnMysqlAlone, isWhole } from "@countersign/test-support/runs/share.ts";
import { type Args, run, type Run, wordsOf } from "./cli-bench.ts";
import { eventually } from "@countersign/test-support/runs/eventually.ts";

type NonceClaim = Parameters<SqliteNonceStore["claim"]>[0];

/** The stores of a platform, and the flags that lead a command to them. */
export interface OperatorBench {
  readonly flags: readonly string[];
  readonly url: string;
  readonly idempotency: Pick<
    IdempotencyStore,
    "claim" | "hold" | "complete" | "release" | "read" | "readReleased"
  >;
  readonly nonces: { claim(claim: NonceClaim): Awaitable<"fresh" | "seen"> };
  /** Absent where the engine keeps no tasks. */
  readonly tasks?: Tasks;
  /** The same stores with a clock that is so many milliseconds behind. */
  behind(ms: number): Pick<OperatorBench, "idempotency" | "nonces" | "tasks">;
  close(): Awaitable<void>;
}

/** The queues of a platform. */
export interface Tasks extends Pick<WorkStore<never>, "claim" | "fail" | "read" | "pause" | "prune"> {
  add(queue: string, ...tasks: readonly NewTask[]): Promise<void>;
  finish(task: OwnedTask): Promise<void>;
}

function withTasks<Tx, Stores extends WorkStores<Tx>>(stores: Stores): Stores & { readonly tasks: Tasks } {
  const { work, transactions } = stores;
  const tasks: Tasks = {
    claim: (claim) => work.claim(claim),
    fail: (task, failure) => work.fail(task, failure),
    read: (queue, id) => work.read(queue, id),
    pause: (queue, decision) => work.pause(queue, decision),
    prune: () => work.prune(),
    add: async (queue, ...added) => {
      await transactions.run<unknown>((tx) => work.add(tx, queue, added));
    },
    finish: async (task) => {
      await transactions.run<unknown>((tx) => work.finish(tx, task));
    },
  };
  return { ...stores, tasks };
}

export interface Engine {
  readonly name: string;
  readonly describe: typeof describe.skip;
  readonly keepsTasks: boolean;
  readonly open: () => Awaitable<OperatorBench>;
}

/** A clock that is behind; undefined for the engine's own. */
function clockBehind(ms: number): { now: () => number } | object {
  return ms === 0 ? {} : { now: () => Date.now() - ms };
}

function openSqlite(): OperatorBench {
  const directory = mkdtempSync(join(tmpdir(), "countersign-operator-"));
  const file = join(directory, "platform.db");
  const database = new Database(file);
  const behind = (ms: number) =>
    withTasks(createStores({ database, pruneIntervalMs: 0, ...clockBehind(ms) }));
  return {
    url: `sqlite:${file}`,
    flags: ["--store-url", `sqlite:${file}`],
    ...behind(0),
    behind,
    close() {
      database.close();
      rmSync(directory, { recursive: true });
    },
  };
}

async function openPostgres(): Promise<OperatorBench> {
  const url = postgresUrl ?? "";
  const schema = isolatedName("operator");
  const pool = new Pool({ connectionString: url, max: 3 });
  await migrate(pool, { schema });
  const database = fromPg(pool);
  const behind = (ms: number) =>
    withTasks(createStores({ database, schema, pruneIntervalMs: 0, ...clockBehind(ms) }));
  return {
    url,
    flags: ["--store-url", url, "--schema", schema],
    ...behind(0),
    behind,
    async close() {
      await pool.query(`DROP SCHEMA ${schema} CASCADE`);
      await pool.end();
    },
  };
}

/** Drops the tables of a prefix. */
export async function dropMysqlTables(
  query: (sql: string) => Promise<unknown>,
  table: string,
): Promise<void> {
  const work = ["lanes", "tasks", "queues", "newest"];
  const names = ["schema", "idempotency", "nonces", "answers", ...work];
  await query(`DROP TABLE IF EXISTS ${names.map((name) => `${table}_${name}`).join(", ")}`);
}

async function openMysql(): Promise<OperatorBench> {
  const url = mysqlUrl ?? "";
  const table = isolatedName("op");
  const pool = createPool({ uri: url, connectionLimit: 3 });
  const database = fromMysql2(pool);
  await migrate(database, { table });
  const behind = (ms: number) =>
    withTasks(createStores({ database, table, pruneIntervalMs: 0, ...clockBehind(ms) }));
  return {
    url,
    flags: ["--store-url", url, "--table", table],
    ...behind(0),
    behind,
    async close() {
      await dropMysqlTables((sql) => pool.query(sql), table);
      await pool.end();
    },
  };
}

async function openRedis(): Promise<OperatorBench> {
  const url = redisUrl ?? "";
  const prefix = isolatedName("operator");
  const client = createClient({ url });
  await client.connect();
  const sendCommand = (command: readonly string[]) => client.sendCommand([...command]);
  const behind = (ms: number) => createRedisStores({ sendCommand, prefix, ...clockBehind(ms) });
  return {
    url,
    flags: ["--store-url", url, "--prefix", prefix],
    ...behind(0),
    behind,
    async close() {
      for await (const keys of client.scanIterator({ MATCH: `${prefix}:*`, COUNT: 1000 })) {
        if (keys.length > 0) await client.unlink(keys);
      }
      client.destroy();
    },
  };
}

export const engines: readonly Engine[] = [
  { name: "SQLite", describe, keepsTasks: true, open: openSqlite },
  { name: "PostgreSQL", describe: describeOnPostgres, keepsTasks: true, open: openPostgres },
  { name: "MariaDB", describe: describeOnMysql, keepsTasks: true, open: openMysql },
  { name: "Redis", describe: describeOnRedis, keepsTasks: false, open: openRedis },
];

/** What a command prints hangs on no engine: `npm test` asks SQLite alone. */
const usual = isOnMysqlAlone ? "MariaDB" : "SQLite";
export const engineRows: readonly Engine[] = engines.filter(({ name }) => isWhole || name === usual);

/** Tests on each of the engines, with a bench that is opened anew for every one. */
export function onEngines(
  rows: readonly Engine[],
  title: string,
  define: (bench: OperatorBench, engine: Engine) => void,
): void {
  for (const engine of rows) {
    engine.describe(`${title} on ${engine.name}`, () => {
      const bench = {} as OperatorBench;
      beforeEach(async () => void Object.assign(bench, await engine.open()));
      afterEach(() => bench.close());
      define(bench, engine);
    });
  }
}

/** Takes a key, for a minute or until its lease has expired. */
export async function begin(bench: OperatorBench, key: string, { expired = false } = {}): Promise<void> {
  const leaseMs = expired ? 1 : 60_000;
  const claim = {
    token: `token-${key}`.slice(0, 512),
    fingerprint: fingerprint,
    leaseMs,
    recovery: "rerun",
  } as const;
  await bench.idempotency.claim(key, claim);
  if (!expired) return;
  await eventually(async () => {
    const record = await bench.idempotency.read(key);
    return record?.state === "running" && record.remainingMs <= 0;
  });
}

/** TEST VALUE. */
export const fingerprint = "0123456789abcdef0123456789abcdef";

export async function hold(bench: OperatorBench, key: string, reason = "the bank timed out"): Promise<void> {
  await begin(bench, key);
  await bench.idempotency.hold(key, `token-${key}`.slice(0, 512), reason);
}

export async function complete(bench: OperatorBench, key: string): Promise<void> {
  await begin(bench, key);
  await bench.idempotency.complete(key, `token-${key}`.slice(0, 512));
}

/** What a claim by somebody else is told. */
export async function statusOf({ idempotency }: OperatorBench, key: string): Promise<string> {
  const claim = { token: "another", fingerprint, leaseMs: 60_000, recovery: "rerun" } as const;
  return (await idempotency.claim(key, claim)).status;
}

/** Runs `countersign …` on the bench, and reads what it printed as one JSON document a line. */
export async function runJson(bench: OperatorBench, args: Args): Promise<unknown[]> {
  const { code, out, err } = await runOn(bench, [...wordsOf(args), "--json"]);
  // 1 may only say that something waits.
  if (code === null || code > 1 || /^error: /m.test(err)) throw new Error(`ended with ${code}: ${err}`);
  return out
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as unknown);
}

export function runOn(bench: OperatorBench, args: Args, io: Parameters<typeof run>[1] = {}): Promise<Run> {
  return run([...wordsOf(args), ...bench.flags], io);
}

/** A store of somebody's own: the methods of one in memory, which need no `this`. */
export function methodsOf(memory: IdempotencyStore): IdempotencyStore {
  return {
    claim: (key, init) => memory.claim(key, init),
    read: async (key) => await memory.read(key),
    heartbeat: (key, token, leaseMs) => memory.heartbeat(key, token, leaseMs),
    complete: (key, token) => memory.complete(key, token),
    release: (key, token) => memory.release(key, token),
    hold: (key, token, reason) => memory.hold(key, token, reason),
    resolve: (key, outcome, decision) => memory.resolve(key, outcome, decision),
    reopen: (key, decision) => memory.reopen(key, decision),
    readReleased: (key) => memory.readReleased(key),
    list: (query) => memory.list?.(query) ?? { entries: [], cursor: undefined },
    prune: () => memory.prune(),
    close: () => memory.close(),
  };
}

/** A file as a platform leaves it, with a held key; returns its store URL. */
export function platformDatabase(file: string, table?: string): string {
  const database = new Database(file);
  const { idempotency, close } = createStores({ database, table, pruneIntervalMs: 0 });
  idempotency.claim("key", { token: "t", fingerprint: "f", leaseMs: 60_000, recovery: "rerun" });
  idempotency.hold("key", "t", "why");
  close();
  database.close();
  return `sqlite:${file}`;
}
