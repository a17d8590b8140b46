// node test/soak/handlers.mjs [--seconds 20] [--seed n] [--engines postgres,mariadb] [--isolation "serializable"] [--only name,name]
// Handlers that do to their transaction what no handler should, while sessions are killed: commit early, change definitions, swallow errors,
// leave statements on their way, hang. At the end no key is paid twice, none is done and unpaid, none is free and paid, and no request that
// was refused for good has paid.
import { randomInt, randomUUID } from "node:crypto";
import process from "node:process";
import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";
import { refuse } from "@countersign/idempotency-guard";
import { transactionRequests } from "@countersign/idempotency-guard/internal";
import { createRandom } from "../fuzz/random.mjs";
import { isContinuousIntegration } from "../support/servers/server-binaries.mjs";
import { databases } from "./databases.mjs";
import { serverUrl } from "./servers.mjs";

// Short, so that what was left comes to an operator while the soak runs.
const transactionTimeoutMs = 1_500;
const workers = 10;
const mostAttempts = 4;
const fingerprint = () => "f".repeat(43);

const tables = {
  payments: { columns: "place, id VARCHAR(64) NOT NULL, attempt VARCHAR(96) NOT NULL", index: "id" },
  hot: { columns: "place, n INT NOT NULL" },
};

/** What is said of an engine alone. */
const dialects = {
  postgres: {
    kill: (id) => `SELECT pg_terminate_backend(${id})`,
    urlOf(url, isolation) {
      const own = new URL(url);
      const level = isolation.replaceAll(" ", String.raw`\ `);
      own.searchParams.set("options", `-c default_transaction_isolation=${level}`);
      return own.href;
    },
    define: (nameOf) => `TRUNCATE ${nameOf("hot_two")}`,
    lock: (nameOf) => `LOCK TABLE ${nameOf("hot_two")} IN EXCLUSIVE MODE`,
    hidden: ["ABORT", "/* */ ROLLBACK", "SELECT 1; ROLLBACK", "SELECT $$a$$; ABORT", "SELECT 1; COMMIT"],
    procedures: () => [],
  },
  mariadb: {
    kill: (id) => `KILL ${id}`,
    urlOf: (url) => url,
    define: (nameOf) => `CREATE TABLE IF NOT EXISTS ${nameOf("made")} (id INT)`,
    lock: (nameOf) => `LOCK TABLES ${nameOf("payments")} WRITE`,
    hidden: ["/* */ ROLLBACK", "/*!50000 ROLLBACK */", "SELECT 1; ROLLBACK", "SET autocommit = 1"],
    procedures: (nameOf) => [`CREATE PROCEDURE ${nameOf("commits")}() COMMIT`],
  },
};

const no = () => refuse("refused", { status: 400 });

/**
 * Each gets `say`, which sends a text by its `tx`; `past`, which sends it past the gate, as a kept connection or a procedure would; `pay`, which
 * writes the payment; `fail`, a statement that the engine refuses; and the engine's own texts. None sends ROLLBACK past the gate: what it then wrote would be its own.
 */
const handlers = {
  pays: ({ pay }) => pay(),
  async refuses({ pay, flip }) {
    if (flip()) await pay();
    throw no();
  },
  async fails({ pay }) {
    await pay();
    throw new Error("fails");
  },
  failsBeside: ({ pay, fail }) => Promise.all([pay(), fail(), delay(3).then(pay)]),
  refusesBeside: ({ pay }) => Promise.race([delay(8).then(pay), delay(3).then(() => Promise.reject(no()))]),
  returnsBefore: ({ pay }) => Promise.race([pay(), delay(0)]),
  async leavesAFailure({ pay, fail, flip }) {
    fail().catch(() => {});
    await delay(0);
    if (flip()) void pay().catch(() => {});
    else await pay();
  },
  async swallows({ pay, fail }) {
    await fail().catch(() => {});
    await pay();
  },
  async deadlocks({ say, pay, flip, nameOf }) {
    const order = flip() ? [1, 2] : [2, 1];
    const update = async () => {
      for (const place of order) {
        await say(`UPDATE ${nameOf("hot")} SET n = n + 1 WHERE place = ${place}`);
        await delay(3);
      }
    };
    await (flip() ? update() : update().catch(() => {}));
    await pay();
  },
  async commitsFirst({ past, pay }) {
    await past("COMMIT");
    await pay();
  },
  async commitsLast({ past, pay }) {
    await pay();
    await past("COMMIT");
  },
  async beginsAnother({ past, pay, flip }) {
    if (flip()) await pay();
    await past("COMMIT");
    await past("BEGIN");
    await pay();
  },
  async chains({ past, pay, flip }) {
    if (flip()) await pay();
    await past("COMMIT AND CHAIN");
    if (flip()) throw no();
    await pay();
  },
  async commitsAndRefuses({ past, pay, flip }) {
    if (flip()) await pay();
    await past("COMMIT");
    throw no();
  },
  async commitsIntoAConflict({ past, pay }) {
    await pay();
    await past("COMMIT");
    throw Object.assign(new Error("conflict"), { code: "40001", errno: 1213, sqlState: "40001" });
  },
  async changesADefinition({ past, pay, define, flip }) {
    if (flip()) await pay();
    await past(define);
    if (flip()) throw no();
    await pay();
  },
  async locksTables({ past, pay, lock }) {
    await past(lock);
    await pay();
  },
  async calls({ say, pay, procedure, flip }) {
    if (flip()) await pay();
    if (procedure !== undefined) await say(`CALL ${procedure}()`);
    if (flip()) throw no();
    await pay();
  },
  async hides({ say, pay, hidden }) {
    await say(hidden).catch(() => {});
    await pay();
  },
  async stands({ pay, flip }) {
    if (flip()) await pay();
    await delay(transactionTimeoutMs * (0.5 + Math.random()));
    await pay();
  },
  async commitsAndHangs({ past, pay, flip }) {
    if (flip()) await pay();
    await past("COMMIT");
    await delay(60_000, undefined, { ref: false });
  },
  writesNothing: () => Promise.resolve(),
};

async function soak({ name, url, random, seconds, isolation, only }) {
  const dialect = dialects[name];
  const { prepare, open, remove } = databases[name];
  const location = await prepare({ url }, { ...tables, hot_two: tables.hot });
  const judge = await open(location, 4);
  const opened = await open({ ...location, url: dialect.urlOf(url, isolation) }, 14);
  const sessions = new Set();
  const lend = (connection) => {
    sessions.add(connection.processID ?? connection.threadId);
    // Of a session that is killed.
    connection.on("error", () => {});
  };
  if (name === "postgres") opened.pool.on("connect", lend);
  else opened.pool.pool.on("connection", lend);
  for (const n of [0, 0]) await judge.write(judge.pool, "hot", { n });
  const ask = async (text) => {
    const result = await judge.pool.query(text);
    return result.rows ?? result[0];
  };
  for (const text of dialect.procedures(judge.nameOf)) await ask(text);
  const { perform } = transactionRequests(opened.stores, {
    scope: "soak",
    waitMs: 400,
    idleTimeoutMs: 1_000,
    transactionTimeoutMs,
    recovery: "rerun",
  });
  const { nameOf } = opened;
  const [procedure] = dialect.procedures(nameOf).length > 0 ? [nameOf("commits")] : [];
  const names = Object.keys(handlers);
  const kinds = only ?? names;
  const pick = () => (only === undefined && random.below(3) === 0 ? "pays" : random.pick(kinds));
  const faults = [];
  const answers = new Map();
  const refused = new Set();
  const told = new Map();
  let attempts = 0;

  const paymentsOf = (id) => judge.read("payments", "WHERE id = ?", [id]);
  async function attempt(id) {
    const kind = pick();
    attempts += 1;
    const mark = `${kind} ${attempts}`;
    const given = (tx) => ({
      say: (text) => tx.query(text),
      past: (text) => opened.database.query(tx, text, []),
      pay: () => opened.write(tx, "payments", { id, attempt: mark }),
      fail: () => tx.query(`INSERT INTO ${nameOf("hot")} (place, n) VALUES (1, 0)`),
      flip: () => random.below(2) === 0,
      define: dialect.define(nameOf),
      lock: dialect.lock(nameOf),
      hidden: random.pick(dialect.hidden),
      procedure,
      nameOf,
    });
    const nonce = {
      claim: { scope: "soak", nonce: randomUUID(), token: randomUUID(), retainMs: 600_000 },
      assertTimely() {},
      replayed: () => new Error("replayed"),
    };
    let status = 200;
    try {
      const whileConnected = (paying) => paying(new AbortController().signal);
      const handle = ({ tx }) => handlers[kind](given(tx));
      await perform({}, { key: id, fingerprint, nonce, mustWrite: true, handle }, { whileConnected });
    } catch (error) {
      status = error.status ?? 500;
    }
    answers.set(status, (answers.get(status) ?? 0) + 1);
    told.set(id, [...(told.get(id) ?? []), `${mark}: ${status}`]);
    if (status === 400) refused.add(mark);
    if ((status === 200 || status === 409) && (await paymentsOf(id)).length === 0)
      faults.push(`${status} without a payment: ${told.get(id).join(", ")}`);
    return status;
  }

  const endsAt = performance.now() + seconds * 1_000;
  const goesOn = () => performance.now() < endsAt;
  const ids = [];
  let kills = 0;
  async function work() {
    while (goesOn()) {
      const id = randomUUID();
      ids.push(id);
      for (let round = 0; round < mostAttempts && goesOn(); round += 1) {
        const statuses = await Promise.all(
          Array.from({ length: 1 + (random.below(3) === 0 ? 1 : 0) }, () => attempt(id)),
        );
        if (statuses.includes(400)) break;
      }
    }
  }
  const working = new Set();
  // As long as anybody works: a session that has locked a table, and stands in the pool, keeps everybody waiting.
  async function killSessions() {
    while (working.size > 0) {
      await delay(150);
      const id = random.pick([...sessions]);
      if (id === undefined) continue;
      sessions.delete(id);
      await ask(dialect.kill(id)).catch(() => {});
      kills += 1;
    }
  }
  const turns = Array.from({ length: workers }, (_none, number) => {
    working.add(number);
    return work().finally(() => working.delete(number));
  });
  await Promise.all([...turns, killSessions()]);
  for (const id of sessions) await ask(dialect.kill(id)).catch(() => {});
  // Every lease has ended, and no tx is open.
  await delay(2 * transactionTimeoutMs + 500);
  const states = new Map();
  for (const id of ids) {
    const state = (await judge.stores.idempotency.read(`soak:${id}`))?.state ?? "free";
    const paid = await paymentsOf(id);
    states.set(state, (states.get(state) ?? 0) + 1);
    const how = `${id}: ${told.get(id)?.join(", ")}`;
    // One handler may write two payments of its own.
    if (new Set(paid.map((row) => row.attempt)).size > 1) faults.push(`paid by two requests, ${how}`);
    if (state === "done" && paid.length === 0) faults.push(`done and unpaid, ${how}`);
    if (state === "free" && paid.length > 0) faults.push(`free and paid, ${how}`);
    if (paid.some((row) => refused.has(row.attempt))) faults.push(`refused for good and paid, ${how}`);
    if (state === "running") {
      const { status } = await judge.stores.idempotency.claim(`soak:${id}`, {
        token: randomUUID(),
        fingerprint: fingerprint(),
        leaseMs: 60_000,
        recovery: "rerun",
      });
      if (status !== "held") faults.push(`what a transaction has left is ${status}, ${how}`);
    }
  }
  // Handlers that hang keep their connections.
  await Promise.race([opened.close().catch(() => {}), delay(5_000)]);
  for (const text of procedure === undefined ? [] : [`DROP PROCEDURE ${procedure}`]) await ask(text);
  await remove(location, judge);
  await judge.close();
  const shown = (map) => [...map].map(([what, count]) => `${count} ${what}`).join(", ");
  return {
    faults,
    summary: `${ids.length} keys (${shown(states)}), ${kills} kills, answers ${shown(answers)}`,
  };
}

const options = {
  seconds: { type: "string", default: process.env.SOAK_SECONDS ?? "20" },
  seed: { type: "string", default: process.env.SOAK_SEED ?? String(randomInt(2 ** 32 - 1)) },
  engines: { type: "string", default: Object.keys(dialects).join(",") },
  isolation: { type: "string", default: "read committed" },
  only: { type: "string" },
};

const { values } = parseArgs({ options });
const [seconds, seed, isolation] = [Number(values.seconds), String(values.seed), String(values.isolation)];
const only = values.only === undefined ? undefined : String(values.only).split(",");
console.log(`handlers: ${seconds} s on each engine, seed ${seed}`);
for (const name of String(values.engines).split(",")) {
  if (!Object.hasOwn(dialects, name)) throw new Error(`no such engine: ${name}`);
  const { needs } = databases[name];
  const url = await serverUrl(needs);
  if (url === undefined) {
    if (isContinuousIntegration()) throw new Error(`a server is missing (${needs}), and CI is set`);
    console.log(`${name}: NOT RUN, no server (${needs})`);
    continue;
  }
  const random = createRandom(`${seed} ${name}`);
  const { faults, summary } = await soak({ name, url, random, seconds, isolation, only });
  console.log(`${name}: ${summary}`);
  for (const fault of faults.slice(0, 20)) console.log(`${name}: VIOLATED: ${fault}`);
  if (faults.length > 20) console.log(`${name}: and ${faults.length - 20} more`);
  if (faults.length > 0) process.exitCode = 1;
}
// Handlers that hang keep the process.
process.exit();
