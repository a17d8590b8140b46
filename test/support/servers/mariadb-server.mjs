// A MariaDB of one's own, in a temporary folder on a free port of loopback. Plain JavaScript without the driver: the set-up of jest runs
// it as it is.
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import path from "node:path";
import { ask, endProcess, freePort, privateFolder, startServer } from "./private-process.mjs";
import { mariadbPrograms, unprivilegedOwner } from "./server-binaries.mjs";

const database = "test";

/** Undefined when the programs are missing, or when only root could run them. `options`: further ones of the server, as `--read-only=1`. */
export async function startMariadbServer(options = []) {
  const { install, server } = mariadbPrograms();
  const owner = unprivilegedOwner();
  if (install === undefined || server === undefined || owner === undefined) return undefined;
  const folder = privateFolder("mariadb", owner);
  const data = path.join(folder.path, "data");
  const port = await freePort();
  const url = `mysql://root@127.0.0.1:${port}/${database}`;
  const command = {
    command: server,
    args: ["--no-defaults", `--datadir=${data}`, `--port=${port}`, ...settings(folder.path), ...options],
    folder: folder.path,
    owner,
    isReady: () => mariadbGreets({ host: "127.0.0.1", port }),
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
    port,
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

/** A server that takes connections speaks first: a packet with the version of its protocol, 10, and its own, up to a NUL. */
export async function mariadbGreets(address) {
  const isEnough = (answer) => answer.length > 5 && answer.includes(0, 5);
  const answer = await ask({ ...address, request: "", isEnough });
  return answer?.[4] === 10 && answer.subarray(5, answer.indexOf(0, 5)).includes("-MariaDB");
}

function initialise(install, data, owner) {
  const args = [
    "--no-defaults",
    `--datadir=${data}`,
    // A server that starts empties its tmpdir: a shared one, of another server's tables too.
    `--tmpdir=${path.dirname(data)}`,
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
    `--tmpdir=${folder}`,
    "--bind-address=127.0.0.1",
    // Small: it runs beside the tests.
    "--innodb-buffer-pool-size=32M",
    "--performance-schema=OFF",
    // As everywhere where money is kept: what was answered is on the disk.
    "--innodb-flush-log-at-trx-commit=1",
  ];
}
