// Payouts a second in transaction mode, beside lease mode, beside hand-written code that does equal work, and beside the floor, in short
// alternating rounds; with --against also beside both modes of another checkout. CPU time is that of this process, which is the platform.
import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { connect as connectSocket } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { fromMysql2 } from "@countersign/store-sql/mysql2";
import { fromPg } from "@countersign/store-sql/pg";
import * as guard from "@countersign/idempotency-guard/internal";
import { createStores, migrate } from "@countersign/store-sql";
import { createWebhookHandler } from "countersign/webhooks";
import Database from "libsql";
import { Client, Pool } from "pg";
import { startMariadbServer } from "../test/support/servers/mariadb-server.mjs";
import { startPostgresServer } from "../test/support/servers/postgres-server.mjs";
import { median } from "./statistics.mjs";

const rounds = 9;
const warmUpRounds = 2;
const fingerprint = () => "x".repeat(43);
const connections = 16;

// What a small machine for a database has; durability stays as PostgreSQL ships it.
const settings = { shared_buffers: "256MB", max_wal_size: "4GB", checkpoint_timeout: "15min" };

const connected = (work) => work(new AbortController().signal);

const nonceOf = (key) => ({ scope: "bench", nonce: key, token: randomUUID(), retainMs: 600_000 });

/** Nonce, key and `insert(tx, key)` in one transaction. `mustWrite`: whether it has to be known that the handler has written, as at an endpoint. */
function transactionSide(stores, insert, { mustWrite = true, packages = guard } = {}) {
  const pay = payerOf(packages, stores, { scope: mustWrite ? "tx" : "unasked" });
  return (key) => {
    const nonce = {
      claim: nonceOf(`${mustWrite} ${key}`),
      assertTimely() {},
      replayed: () => new Error("replayed"),
    };
    return pay({ key, fingerprint, nonce, mustWrite }, (tx) => insert(tx, key));
  };
}

/** Transaction mode of these packages. */
function payerOf({ transactionRequests, transactionOwner }, stores, options) {
  if (transactionRequests === undefined) {
    // Before decision 0094.
    const { pay } = transactionOwner(stores, options);
    return (request, handle) => pay({}, request, connected, handle);
  }
  const { perform } = transactionRequests(stores, options);
  return (request, handle) =>
    perform({}, { ...request, handle: ({ tx }) => handle(tx) }, { whileConnected: connected });
}

/** Lease mode of these packages. */
function leaserOf({ leaseRequests, resolveOwnerOptions, keyOwner }, options) {
  if (leaseRequests === undefined) {
    const leases = keyOwner(options);
    return async (request, act) => {
      const run = await leases.claim({}, request, connected);
      await act();
      await run.decide(200);
    };
  }
  const { perform } = leaseRequests(resolveOwnerOptions(options, "bench"));
  return (request, act) =>
    perform({}, request, {
      whileConnected: connected,
      async begin() {
        await act();
        return { kind: "responded", status: 200 };
      },
    });
}

/** The statements of hand-written code that does equal work: a nonce, a key, and the payment. `place` gives the placeholder of a value. */
function equalStatements({ prefix = "", place = () => "?" } = {}) {
  const values = [place(1), place(2)].join(", ");
  return [
    `INSERT INTO ${prefix}equal_nonces VALUES (${values})`,
    `INSERT INTO ${prefix}equal_keys VALUES (${values})`,
  ];
}

/** Does equal work on a connection out of a pool of pg or mysql2. */
async function equalWork(connection, [nonceInto, keyInto], insert, key) {
  const token = randomUUID();
  try {
    await connection.query("BEGIN");
    await connection.query(nonceInto, [key, token]);
    await connection.query(keyInto, [key, token]);
    await insert(connection);
    await connection.query("COMMIT");
  } finally {
    connection.release();
  }
}

function equalTables(text, prefix = "") {
  return ["equal_nonces", "equal_keys"].map(
    (table) =>
      `CREATE TABLE IF NOT EXISTS ${prefix}${table} (name ${text} PRIMARY KEY, token ${text} NOT NULL)`,
  );
}

/** The nonce, a lease on the key, `act(key)` in the place of an effect elsewhere, and the record. */
function leaseSide({ nonces, idempotency: store }, act, packages = guard) {
  const pay = leaserOf(packages, { store, recovery: "rerun", scope: "lease" });
  return async (key) => {
    if ((await nonces.claim(nonceOf(`lease ${key}`))) !== "fresh") throw new Error("a fresh nonce was seen");
    await pay({ key, fingerprint }, () => act(key));
  };
}

/**
 * All sides insert one payment. Transaction mode claims nonce and key in its transaction; "unasked" is the same without asking whether the
 * handler has written; lease mode claims nonce and key, inserts the payment by itself, and records the key; "equal" is three plain
 * INSERTs (nonce, key, payment) between BEGIN and COMMIT; the floor is BEGIN, INSERT with a unique key, COMMIT: no nonce, no record of the key.
 */
export async function postgresTransactions({ against }) {
  const other = against && (await packagesOf(against));
  const server = await startPostgresServer({ settings });
  if (server === undefined) return undefined;
  try {
    return [
      ...(await postgresSides(server.url, { title: "PostgreSQL", lagMs: 0, perRound: 800, other })),
      ...(await postgresSides(server.url, {
        title: "PostgreSQL, 1 ms a message",
        lagMs: 1,
        perRound: 400,
        other,
      })),
    ];
  } finally {
    await server.close();
  }
}

/** What another checkout has for both modes on PostgreSQL. */
async function packagesOf(folder) {
  const { resolve } = createRequire(path.join(folder, "bench", "transactions.mjs"));
  const load = async (module) => import(pathToFileURL(resolve(module)).href);
  const name = "@countersign/idempotency-guard";
  // The entry point had another name before packages/doors became packages/adapters.
  const owners = await load(`${name}/internal`).catch(() => load(`${name}/door`));
  return {
    ...owners,
    // Before packages/stores/store-sql there were two packages.
    ...(await load("@countersign/store-sql/pg").catch(() => load("@countersign/databases"))),
    ...(await load("@countersign/store-sql").catch(() => load("@countersign/store-postgres"))),
  };
}

/** Both modes of another checkout, on tables of its own. */
async function otherSides(pool, other, insert) {
  const schema = `other_${randomUUID().slice(0, 8)}`;
  await (other.migrate ?? other.migratePostgres)(pool, { schema });
  const stores = (other.createStores ?? other.createPostgresStores)({
    database: other.fromPg(pool),
    schema,
    pruneIntervalMs: 0,
  });
  const act = (key) => pool.query(insert, [key]);
  const pay = (tx, key) => tx.query(insert, [key]);
  const sides = {
    "transaction of the other checkout": transactionSide(stores, pay, { packages: other }),
    "lease mode of the other checkout": leaseSide(stores, act, other),
  };
  return { stores, sides };
}

async function postgresSides(connectionString, { title, lagMs, perRound, other }) {
  const sent = { messages: 0 };
  const pool = new Pool({ connectionString, max: connections, Client: countingClient(sent, lagMs) });
  pool.on("error", () => {});
  const schema = `bench_${randomUUID().slice(0, 8)}`;
  const stores = createStores({ database: fromPg(pool), schema, pruneIntervalMs: 0 });
  let before;
  try {
    await migrate(pool, { schema });
    await pool.query(`CREATE TABLE ${schema}.payments (key text NOT NULL)`);
    await pool.query(`CREATE TABLE ${schema}.floor (key text PRIMARY KEY)`);
    const insert = `INSERT INTO ${schema}.payments VALUES ($1)`;
    const transaction = transactionSide(stores, (tx, key) => tx.query(insert, [key]));
    const lease = leaseSide(stores, (key) => pool.query(insert, [key]));
    const floor = async (key) => {
      const client = await pool.connect();
      try {
        await client.query("BEGIN");
        await client.query(`INSERT INTO ${schema}.floor VALUES ($1)`, [key]);
        await client.query("COMMIT");
      } finally {
        client.release();
      }
    };
    for (const table of equalTables("text", `${schema}.`)) await pool.query(table);
    const claims = equalStatements({ prefix: `${schema}.`, place: (number) => `$${number}` });
    const equal = async (key) =>
      equalWork(await pool.connect(), claims, (client) => client.query(insert, [key]), key);
    const unasked = transactionSide(stores, (tx, key) => tx.query(insert, [key]), { mustWrite: false });
    const sides = { transaction, unasked, lease, equal, floor };
    before = other && (await otherSides(pool, other, insert));
    Object.assign(sides, before?.sides);
    const messages = await messagesOf(sent, sides);
    const flushes = lagMs > 0 ? [] : [await flushesOf(title, sides, () => walSyncs(pool))];
    const results = await compare({
      title,
      sides,
      perRound,
      loops: connections,
      leastOfEqual: lagMs > 0 ? 1 : 0.85,
    });
    return [...results, `${title}: messages a payout: ${messages}`, ...flushes];
  } finally {
    before?.stores.close();
    stores.close();
    await pool.end();
  }
}

/** Webhooks of fifty events, each with one row: in one commit, and each claimed, written by itself, and recorded. */
export async function postgresEvents() {
  const server = await startPostgresServer({ settings });
  if (server === undefined) return undefined;
  const pool = new Pool({ connectionString: server.url, max: connections });
  pool.on("error", () => {});
  const stores = createStores({ database: fromPg(pool), pruneIntervalMs: 0 });
  try {
    await migrate(pool);
    await pool.query("CREATE TABLE handled (id text NOT NULL)");
    const insert = "INSERT INTO handled VALUES ($1)";
    const inTransactions = createWebhookHandler({
      stores,
      keyPrefix: "tx:",
      fallback: (event, { tx }) => tx.query(insert, [event.event_id]),
    });
    const inLeases = createWebhookHandler({
      store: stores.idempotency,
      keyPrefix: "lease:",
      fallback: (event) => pool.query(insert, [event.event_id]),
    });
    const handle = (handler) => async (key) => {
      const { acknowledged } = await handler.handle(envelopeOf(key, 50));
      if (!acknowledged) throw new Error("an event was not handled");
    };
    const [transaction, lease] = [handle(inTransactions), handle(inLeases)];
    const times = await measured([transaction, lease], { perRound: 32, loops: 4 });
    const ratio = median(times.get(lease).map((took, round) => took / times.get(transaction)[round]));
    const perSecond = [transaction, lease].map((side) => Math.round((32 * 50_000) / median(times.get(side))));
    return [
      resultOf("PostgreSQL: webhooks of 50 events, transaction / lease mode", ratio, 5),
      `PostgreSQL: events a second: transaction ${perSecond[0]}, lease mode ${perSecond[1]}`,
    ];
  } finally {
    stores.close();
    await pool.end();
    await server.close();
  }
}

function envelopeOf(key, count) {
  const timestamp = { raw: "2026-01-01T00:00:00Z", date: new Date(), epochNanoseconds: 0n };
  const events = Array.from({ length: count }, (_, index) => ({
    event_id: `${key}-${index}`,
    type: "bench.event",
    timestamp,
    data: {},
  }));
  return { webhook_id: key, timestamp, events, invalid: [] };
}

/** A client that counts its messages, and waits before each. */
function countingClient(sent, lagMs) {
  return class CountingClient extends Client {
    query(...parameters) {
      sent.messages += 1;
      if (lagMs === 0) return super.query(...parameters);
      const callback = parameters.at(-1);
      if (typeof callback === "function") {
        setTimeout(() => super.query(...parameters), lagMs);
        return undefined;
      }
      return (async () => {
        await delay(lagMs);
        return super.query(...parameters);
      })();
    }
  };
}

const flushedPayouts = 100;

/** How often the server flushed its log for each of some payouts, one at a time. */
async function flushesOf(title, sides, count) {
  const counts = [];
  for (const [name, side] of Object.entries(sides)) {
    const before = await count();
    for (let payout = 0; payout < flushedPayouts; payout++) await side(randomUUID());
    counts.push(`${name} ${(((await count()) - before) / flushedPayouts).toFixed(2)}`);
  }
  return `${title}: flushes of the log a payout: ${counts.join(", ")}`;
}

async function walSyncs(pool) {
  // A session tells of its own only now and then, unless it is asked.
  const clients = await Promise.all(Array.from({ length: pool.totalCount }, () => pool.connect()));
  for (const client of clients) {
    await client.query("SELECT pg_stat_force_next_flush()");
    client.release();
  }
  const { rows } = await pool.query("SELECT wal_sync::int AS syncs FROM pg_stat_wal");
  return rows[0].syncs;
}

async function messagesOf(sent, sides) {
  const counts = [];
  for (const [name, side] of Object.entries(sides)) {
    await side(randomUUID());
    sent.messages = 0;
    await side(randomUUID());
    counts.push(`${name} ${sent.messages}`);
  }
  return counts.join(", ");
}

const insertInMariadb = (tx, key) => tx.query("INSERT INTO payments VALUES (?)", [key]);

export async function mariadbTransactions() {
  const server = await startMariadbServer();
  if (server === undefined) return undefined;
  try {
    return [
      ...(await mariadbSides(server.url, { title: "MariaDB", lagMs: 0, perRound: 400 })),
      ...(await mariadbSides(server.url, { title: "MariaDB, 1 ms a message", lagMs: 1, perRound: 400 })),
    ];
  } finally {
    await server.close();
  }
}

async function mariadbSides(uri, { title, lagMs, perRound }) {
  const { createPool } = await import("mysql2/promise");
  const sent = { messages: 0 };
  const { hostname: host, port } = new URL(uri);
  const stream = () => laggingSocket({ host, port: Number(port) }, sent, lagMs);
  const pool = createPool({ uri, connectionLimit: connections, stream });
  const database = fromMysql2(pool);
  await migrate(database);
  const stores = createStores({ database, pruneIntervalMs: 0 });
  try {
    await pool.query("CREATE TABLE IF NOT EXISTS payments (idempotency_key VARCHAR(128) NOT NULL)");
    await pool.query("CREATE TABLE IF NOT EXISTS floor (idempotency_key VARCHAR(128) PRIMARY KEY)");
    const lease = leaseSide(stores, (key) => insertInMariadb(pool, key));
    const floor = async (key) => {
      const connection = await pool.getConnection();
      try {
        await connection.query("BEGIN");
        await connection.query("INSERT INTO floor VALUES (?)", [key]);
        await connection.query("COMMIT");
      } finally {
        connection.release();
      }
    };
    for (const table of equalTables("VARCHAR(128)")) await pool.query(table);
    const claims = equalStatements();
    const equal = async (key) =>
      equalWork(await pool.getConnection(), claims, (connection) => insertInMariadb(connection, key), key);
    const transaction = transactionSide(stores, insertInMariadb);
    const unasked = transactionSide(stores, insertInMariadb, { mustWrite: false });
    const sides = { transaction, unasked, lease, equal, floor };
    const messages = await messagesOf(sent, sides);
    const flushes = lagMs > 0 ? [] : [await flushesOf(title, sides, () => logFlushes(pool))];
    const results = await compare({
      title,
      sides,
      perRound,
      loops: connections,
      leastOfFloor: 0.45,
      leastOfEqual: lagMs > 0 ? 0.75 : 0.65,
    });
    return [...results, `${title}: messages a payout: ${messages}`, ...flushes];
  } finally {
    stores.close();
    await pool.end();
  }
}

async function logFlushes(pool) {
  const [rows] = await pool.query("SHOW GLOBAL STATUS LIKE 'Innodb_data_fsyncs'");
  return Number(rows[0].Value);
}

/** A socket that counts what is written to it, and writes each some time later, in order. */
function laggingSocket(address, sent, lagMs) {
  const socket = connectSocket(address);
  const write = socket.write.bind(socket);
  let last = Promise.resolve();
  const writeLate = async (due, parameters) => {
    await due;
    write(...parameters);
  };
  socket.write = (...parameters) => {
    sent.messages += 1;
    if (lagMs === 0) return write(...parameters);
    last = writeLate(Promise.all([last, delay(lagMs)]), parameters);
    return true;
  };
  return socket;
}

/** On a file, durable as the stores set it. */
export async function sqliteTransactions() {
  const folder = mkdtempSync(path.join(tmpdir(), "countersign-bench-"));
  const database = new Database(path.join(folder, "bench.db"));
  const stores = createStores({ database, pruneIntervalMs: 0 });
  try {
    database.exec("CREATE TABLE payments (key TEXT NOT NULL); CREATE TABLE floor (key TEXT PRIMARY KEY)");
    const insert = database.prepare("INSERT INTO payments VALUES (?)");
    const insertFloor = database.prepare("INSERT INTO floor VALUES (?)");
    const transaction = transactionSide(stores, (_tx, key) => insert.run(key));
    const lease = leaseSide(stores, (key) => insert.run(key));
    const floor = async (key) => {
      database.exec("BEGIN IMMEDIATE");
      insertFloor.run(key);
      database.exec("COMMIT");
    };
    for (const table of equalTables("TEXT")) database.exec(table);
    const [insertNonce, insertKey] = equalStatements().map((text) => database.prepare(text));
    const equal = async (key) => {
      const token = randomUUID();
      database.exec("BEGIN IMMEDIATE");
      insertNonce.run(key, token);
      insertKey.run(key, token);
      insert.run(key);
      database.exec("COMMIT");
    };
    const unasked = transactionSide(stores, (_tx, key) => insert.run(key), { mustWrite: false });
    const sides = { transaction, unasked, lease, equal, floor };
    return await compare({
      title: "SQLite",
      sides,
      perRound: 400,
      loops: 1,
      leastOfFloor: 0.85,
      leastOfEqual: 0.8,
    });
  } finally {
    stores.close();
    database.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function compare({ title, sides, perRound, loops, leastOfEqual, leastOfFloor = 0.5 }) {
  const names = Object.keys(sides);
  const all = Object.values(sides);
  const [transaction] = all;
  const cpuMicros = new Map(all.map((side) => [side, []]));
  const times = await measured(all, { perRound, loops, cpuMicros });
  const ratioTo = (other) =>
    median(times.get(other).map((took, round) => took / times.get(transaction)[round]));
  const leastOf = { floor: leastOfFloor, equal: leastOfEqual, unasked: 0.97 };
  const each = (figureOf) => names.map((name) => `${name} ${figureOf(sides[name]).toFixed(0)}`).join(", ");
  return [
    ...names
      .slice(1)
      .map((name) => resultOf(`${title}: transaction / ${name}`, ratioTo(sides[name]), leastOf[name] ?? 3)),
    `${title}: payouts a second: ${each((side) => (perRound / median(times.get(side))) * 1_000)}`,
    `${title}: CPU us a payout in the platform's process: ${each((side) => median(cpuMicros.get(side)))}`,
  ];
}

/** The times of each side's rounds, in milliseconds. */
async function measured(sides, { perRound, loops, cpuMicros }) {
  const times = new Map(sides.map((side) => [side, []]));
  for (let round = -warmUpRounds; round < rounds; round++) {
    // Who goes first alternates: a checkpoint or a vacuum finds each side as often.
    for (const side of round % 2 === 0 ? sides : sides.toReversed()) {
      const before = process.cpuUsage();
      const took = await timed(side, perRound, loops);
      const { user, system } = process.cpuUsage(before);
      if (round < 0) continue;
      times.get(side).push(took);
      cpuMicros?.get(side).push((user + system) / perRound);
    }
  }
  return times;
}

function resultOf(name, ratio, least) {
  return { name, ratio, target: `>= ${least.toFixed(2)}`, met: (found) => found >= least };
}

async function timed(side, count, loops) {
  const keys = Array.from({ length: count }, () => randomUUID());
  const startedAt = performance.now();
  const loop = async () => {
    for (let key = keys.pop(); key !== undefined; key = keys.pop()) await side(key);
  };
  await Promise.all(Array.from({ length: loops }, loop));
  return performance.now() - startedAt;
}
