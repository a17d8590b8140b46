// Runs a command with a MariaDB of its own that was never used, MARIADB_URL set to it:
//     node examples/custom-store/test/server/with-mariadb.mjs npm test -- examples/custom-store
import process from "node:process";
import { runCommand } from "../../../../test/support/runs/run-command.mjs";
import { reportMissing } from "../../../../test/support/servers/server-binaries.mjs";
import { startMariadbServer } from "./mariadb-server.mjs";

const command = process.argv.slice(2);
if (command.length === 0) throw new Error("usage: node with-mariadb.mjs COMMAND [ARGUMENT …]");

const server = await startMariadbServer();
if (server === undefined) reportMissing("MariaDB", "the command runs without it.");
try {
  // Empty: the tests are not to take the server of this machine instead.
  process.exitCode = await runCommand(command, { ...process.env, MARIADB_URL: server?.url ?? "" });
} finally {
  await server?.close();
}
