// Before the first test: finds PostgreSQL, Redis and MariaDB, or starts private ones, and tells test/support/servers/engines.ts by
// DATABASE_URL, REDIS_URL and MYSQL_URL where they are ("" where there is none), and by MYSQL_ENGINE whether the last one is a MySQL. A URL that was given is used or is an error, never replaced.
import { readFileSync, readdirSync } from "node:fs";
import path from "node:path";
import process from "node:process";
import { memberFolders, root } from "../../../scripts/workspace.mjs";
import { mariadbGreets, startMariadbServer } from "../servers/mariadb-server.mjs";
import { postgresAnswers, startPostgresServer } from "../servers/postgres-server.mjs";
import { redisAnswers, startRedisServer } from "../servers/redis-server.mjs";
import { mysqlProgram, reportMissing } from "../servers/server-binaries.mjs";

// A busy machine takes more than five seconds to greet.
const answerMs = 30_000;
const usualMysql = "mysql://root@127.0.0.1:3306/test";

const engines = [
  {
    name: "PostgreSQL",
    variable: "DATABASE_URL",
    usual: "postgres://postgres@127.0.0.1:5432/test",
    usualAnswers: () =>
      postgresAnswers({ host: "127.0.0.1", port: 5432, user: "postgres", database: "test", timeoutMs: 500 }),
    check: checkPostgres,
    start: startPostgresServer,
  },
  {
    name: "Redis",
    variable: "REDIS_URL",
    usual: "redis://127.0.0.1:6379",
    usualAnswers: () => redisAnswers({ host: "127.0.0.1", port: 6379, timeoutMs: 500 }),
    check: checkRedis,
    start: startRedisServer,
  },
  {
    // Or MySQL, where one is given.
    name: "MariaDB",
    variable: "MYSQL_URL",
    usual: usualMysql,
    usualAnswers: usualMysqlAnswers,
    check: checkMysql,
    start: startMariadbServer,
  },
];

const started = [];
let usesServers = false;

// oxlint-disable-next-line import/no-default-export -- jest calls it
export default async function setUpEngines(globalConfig) {
  usesServers = isNeeded(globalConfig);
  try {
    await Promise.all(engines.map(setUp));
  } catch (error) {
    await stopStartedServers();
    throw error;
  }
}

export async function stopStartedServers() {
  await Promise.all(started.splice(0).map((server) => server.close()));
}

async function setUp(engine) {
  const given = process.env[engine.variable];
  if (given !== undefined && given !== "") return checkGiven(engine, given);
  if (given !== "" && (await engine.usualAnswers())) {
    process.env[engine.variable] = engine.usual;
    return;
  }
  process.env[engine.variable] = "";
  if (!usesServers) return;
  const server = given === "" ? undefined : await engine.start();
  if (server !== undefined) {
    started.push(server);
    process.env[engine.variable] = server.url;
    return;
  }
  reportMissing(
    engine.name,
    `every test of the stores on ${engine.name} is skipped. ` +
      `Install it, or set ${engine.variable} to the URL of a server for tests.`,
  );
}

/** What the run leaves out where the machine has no MySQL. A run on MariaDB passes without one: what differs is seen only where it is said. */
export function leftOutOfMysql() {
  if (!usesServers || process.env["MYSQL_ENGINE"] === "mysql" || mysqlProgram() !== undefined)
    return undefined;
  return (
    "MySQL is missing on this machine: nothing was tested on it, only on MariaDB. test/support/servers/get-mysql.sh " +
    "unpacks one for node test/support/runs/with-servers.mjs --mysql npm test -- packages/stores"
  );
}

async function checkGiven({ name, variable, check }, url) {
  try {
    await check(url);
  } catch (error) {
    // The URL may hold a password, and so may a driver's message about it.
    // oxlint-disable-next-line preserve-caught-error -- for the same reason
    throw new Error(`${variable} is set, but no ${name} answers there (${error?.code ?? error?.name})`);
  }
}

async function checkPostgres(url) {
  const { default: pg } = await import("pg");
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: answerMs });
  client.on("error", () => {});
  try {
    await client.connect();
  } finally {
    await client.end();
  }
}

async function checkRedis(url) {
  const { createClient } = await import("redis");
  const socket = { connectTimeout: answerMs, reconnectStrategy: false };
  const client = createClient({ url, socket }).on("error", () => {});
  await client.connect();
  try {
    await client.ping();
  } finally {
    client.destroy();
  }
}

// The driver only where it will be needed: its import takes longer than the greeting.
async function usualMysqlAnswers() {
  if (!(await mariadbGreets({ host: "127.0.0.1", port: 3306, timeoutMs: 500 }))) return false;
  try {
    await checkMysql(usualMysql);
    return true;
  } catch {
    return false;
  }
}

async function checkMysql(url) {
  const { createConnection } = await import("mysql2/promise");
  const connection = await createConnection({ uri: url, connectTimeout: answerMs });
  const [[row]] = await connection.query("SELECT VERSION() AS version");
  await connection.end();
  process.env["MYSQL_ENGINE"] = String(row?.version).includes("MariaDB") ? "mariadb" : "mysql";
}

// Starting a server takes seconds: not for a run whose tests use none.
function isNeeded({ testPathPatterns }) {
  return engineTests().some((file) => isSelected(testPathPatterns, file));
}

function isSelected(testPathPatterns, file) {
  const { patterns = [] } = testPathPatterns ?? {};
  return patterns.length === 0 || patterns.some((pattern) => new RegExp(pattern, "i").test(file));
}

/** The test files of every folder in which some file uses the engines. */
function engineTests() {
  const folders = memberFolders().map((folder) => path.join(root, folder, "test"));
  const top = readdirSync(path.join(root, "test")).map((name) => path.join(root, "test", name));
  return [...folders, ...top].map(sourcesOf).filter(usesEngines).flat();
}

function sourcesOf(folder) {
  try {
    return readdirSync(folder, { recursive: true })
      .filter((name) => name.endsWith(".ts"))
      .map((name) => path.join(folder, name));
  } catch {
    return [];
  }
}

function usesEngines(files) {
  return files.some((file) =>
    /support\/(?:servers\/)?(?:engines|private-|pgbouncer)/.test(readFileSync(file, "utf8")),
  );
}
