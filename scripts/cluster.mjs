// npm run cluster: two platforms on PostgreSQL and Redis behind a proxy, as a table, then serving. --once: only the table.
// --store postgres: without Redis. Servers are those of DATABASE_URL and REDIS_URL, or are started for this run alone.
import path from "node:path";
import { startPostgresServer } from "../test/support/servers/postgres-server.mjs";
import { startRedisServer } from "../test/support/servers/redis-server.mjs";
import { ensureReady, root, runScript } from "./setup.mjs";

runScript(async () => {
  ensureReady({ project: "examples/cluster" });
  const { runCluster } = await import("../examples/cluster/dist/cluster.js");
  const cwd = process.env.INIT_CWD ?? process.cwd();
  const servers = { postgres: startPostgresServer, redis: () => startRedisServer({ persist: true }) };
  await runCluster(process.argv.slice(2), { folder: path.join(root, ".demo"), cwd, servers });
});
