// A MariaDB of one's own, in a temporary folder on a free port of loopback. Plain JavaScript without the driver: with-mariadb.mjs runs
// it as it is, also before anything is installed.
import { execFileSync } from "node:child_process";
import { accessSync, constants, writeFileSync } from "node:fs";
import path from "node:path";
import process from "node:process";
import {
  ask,
  endProcess,
  freePort,
  privateFolder,
  startServer,
} from "../../../../test/support/servers/private-process.mjs";
import { unprivilegedOwner } from "../../../../test/support/servers/server-binaries.mjs";

const database = "test";

/** Undefined when the programs are missing, or when only root could run them. */
export async function startMariadbServer() {
  const [install, server] = [programOf("mariadb-install-db"), programOf("mariadbd")];
  const owner = unprivilegedOwner();
  if (install === undefined || server === undefined || owner === undefined) return undefined;
  const folder = privateFolder("mariadb", owner);
  const data = path.join(folder.path, "data");
  const port = await freePort();
  const url = `mysql://root@127.0.0.1:${port}/${database}`;
  const command = {
    command: server,
    args: ["--no-defaults", `--datadir=${data}`, `--port=${port}`, ...settings(folder.path)],
    folder: folder.path,
    owner,
    isReady: () => greets(port),
  };
  let child;
  try {
    initialise(install, data, owner);
    child = await startServer(command);
  } catch (error) {
    folder.remove();
    throw error;
  }
  return {
    url,
    kill: () => endProcess(child, "SIGKILL"),
    pause: () => child.kill("SIGSTOP"),
    resume: () => child.kill("SIGCONT"),
    async start() {
      child = await startServer(command);
    },
    async close() {
      await endProcess(child, "SIGTERM");
      folder.remove();
    },
  };
}

/** A server that takes connections speaks first: a packet whose first byte is the version of its protocol, 10. */
async function greets(port) {
  const isEnough = (answer) => answer.length > 4;
  const answer = await ask({ host: "127.0.0.1", port, request: "", isEnough });
  return answer?.[4] === 10;
}

function initialise(install, data, owner) {
  const args = [
    "--no-defaults",
    `--datadir=${data}`,
    "--auth-root-authentication-method=normal",
    "--skip-test-db",
  ];
  execFileSync(install, args, { ...owner, cwd: path.dirname(data), stdio: "pipe" });
}

function settings(folder) {
  const init = path.join(folder, "init.sql");
  writeFileSync(init, `CREATE DATABASE IF NOT EXISTS ${database};\n`);
  return [
    `--init-file=${init}`,
    `--socket=${path.join(folder, "socket")}`,
    `--pid-file=${path.join(folder, "pid")}`,
    "--bind-address=127.0.0.1",
    // Small: it runs beside the tests.
    "--innodb-buffer-pool-size=32M",
    "--performance-schema=OFF",
    // As everywhere where money is kept: what was answered is on the disk.
    "--innodb-flush-log-at-trx-commit=1",
  ];
}

// Debian keeps servers in sbin, which is not in the PATH of everybody.
function programOf(name) {
  const folders = (process.env["PATH"] ?? "")
    .split(path.delimiter)
    .filter((folder) => path.isAbsolute(folder));
  return [...folders, "/usr/local/sbin", "/usr/sbin"]
    .map((folder) => path.join(folder, name))
    .find((file) => isExecutable(file));
}

function isExecutable(file) {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
