// Runs a command with a PostgreSQL, a Redis and a MariaDB of its own that were never used, DATABASE_URL, REDIS_URL and MYSQL_URL set to
// them; their programs are those that PATH finds first. With --mysql the last one is a MySQL, of PATH or of get-mysql.sh:
//     node test/support/runs/with-servers.mjs npm test -- packages/stores/store-sql/test/postgres
//     node test/support/runs/with-servers.mjs --mysql npm test -- packages/stores/store-sql/test/mysql
import process from "node:process";
import { startMariadbServer } from "../servers/mariadb-server.mjs";
import { startMysqlServer } from "../servers/mysql-server.mjs";
import { startPostgresServer } from "../servers/postgres-server.mjs";
import { startRedisServer } from "../servers/redis-server.mjs";
import { runCommand } from "./run-command.mjs";
import { reportMissing } from "../servers/server-binaries.mjs";

const [first, ...rest] = process.argv.slice(2);
const isOnMysql = first === "--mysql";
const command = isOnMysql ? rest : process.argv.slice(2);
if (command.length === 0)
  throw new Error("usage: node test/support/runs/with-servers.mjs [--mysql] COMMAND [ARGUMENT …]");

const started = [];
try {
  const urls = {
    DATABASE_URL: await startOne("PostgreSQL", startPostgresServer),
    REDIS_URL: await startOne("Redis", startRedisServer),
    MYSQL_URL: isOnMysql
      ? await startOne("MySQL", startMysqlServer)
      : await startOne("MariaDB", startMariadbServer),
  };
  process.exitCode = await runCommand(command, { ...process.env, ...urls });
} finally {
  await Promise.all(started.map((server) => server.close()));
}

async function startOne(name, start) {
  const server = await start();
  if (server !== undefined) started.push(server);
  else reportMissing(name, "the command runs without it.");
  // Empty: the tests are not to take the server of this machine instead.
  return server?.url ?? "";
}
