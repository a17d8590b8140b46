// Runs a command with DATABASE_URL set to a PostgreSQL of its own, of the version that PATH finds first:
//     node test/support/with-postgres.mjs npx jest packages/store-postgres
import { spawn } from "node:child_process";
import { once } from "node:events";
import process from "node:process";
import { startPostgresServer } from "./postgres-server.mjs";
import { reportMissing } from "./server-binaries.mjs";

const [command, ...args] = process.argv.slice(2);
if (command === undefined) throw new Error("usage: node test/support/with-postgres.mjs COMMAND [ARGUMENT …]");
const server = await startPostgresServer();
if (server === undefined) {
  reportMissing("PostgreSQL", `${command} was not run.`);
} else {
  try {
    const child = spawn(command, args, {
      stdio: "inherit",
      env: { ...process.env, DATABASE_URL: server.url },
    });
    const [code] = await once(child, "exit");
    process.exitCode = code ?? 1;
  } finally {
    await server.close();
  }
}
