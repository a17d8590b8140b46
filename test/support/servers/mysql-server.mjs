// A MySQL of one's own, as mariadb-server.mjs has a MariaDB.
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import path from "node:path";
import { ask, endProcess, freePort, privateFolder, startServer } from "./private-process.mjs";
import { mysqlProgram, unprivilegedOwner } from "./server-binaries.mjs";

const database = "test";

/** Undefined when the program is missing, or when only root could run it. `options`: further ones of the server, as `--read-only=1`. */
export async function startMysqlServer(options = []) {
  const program = mysqlProgram();
  const owner = unprivilegedOwner();
  if (program === undefined || owner === undefined) return undefined;
  const folder = privateFolder("mysql", owner);
  const data = path.join(folder.path, "data");
  const port = await freePort();
  const url = `mysql://root@127.0.0.1:${port}/${database}`;
  const args = [...program.args, "--no-defaults", ...(program.settings ?? []), `--datadir=${data}`];
  const command = {
    command: program.command,
    args: [...args, `--port=${port}`, ...settings(folder.path), ...options],
    folder: folder.path,
    owner,
    isReady: () => mysqlGreets({ host: "127.0.0.1", port }),
  };
  let child;
  try {
    execFileSync(program.command, [...args, "--initialize-insecure"], {
      ...owner,
      cwd: folder.path,
      stdio: "pipe",
    });
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

/** As MariaDB's, with another version. */
async function mysqlGreets(address) {
  const isEnough = (answer) => answer.length > 5 && answer.includes(0, 5);
  const answer = await ask({ ...address, request: "", isEnough });
  return answer?.[4] === 10 && !answer.subarray(5, answer.indexOf(0, 5)).includes("-MariaDB");
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
    "--mysqlx=OFF",
    "--secure-file-priv=NULL",
    // Small: it runs beside the tests.
    "--innodb-buffer-pool-size=64M",
    "--performance-schema=OFF",
    // As everywhere where money is kept: what was answered is on the disk.
    "--innodb-flush-log-at-trx-commit=1",
    "--sync-binlog=1",
    // As where tables without transactions are still in use: with GTIDs the server refuses to write both kinds in one transaction.
    "--gtid-mode=OFF",
    "--enforce-gtid-consistency=OFF",
  ];
}
