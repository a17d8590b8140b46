// A PostgreSQL of one's own, in a temporary folder on a free port of loopback. Plain JavaScript: the set-up of jest runs it as it is.
import { spawnSync } from "node:child_process";
import { realpathSync } from "node:fs";
import path from "node:path";
import { ask, endProcess, freePort, privateFolder, startServer } from "./private-process.mjs";
import { postgresFolder, unprivilegedOwner } from "./server-binaries.mjs";

const superuser = "postgres";
const shutdownSignals = { fast: "SIGINT", immediate: "SIGQUIT", kill: "SIGKILL" };

/** Undefined when the binaries are missing, or when only root could run them. With `standbyOf`, a copy that follows that server. */
export async function startPostgresServer({ settings = {}, standbyOf } = {}) {
  const bin = postgresFolder();
  const owner = unprivilegedOwner();
  if (bin === undefined || owner === undefined) return undefined;
  const folder = privateFolder("postgres", owner);
  const data = path.join(folder.path, "data");
  const port = await freePort();
  const command = {
    command: path.join(bin, "postgres"),
    args: ["-D", data, ...settingArgs({ ...usualSettings, port, ...settings })],
    folder: folder.path,
    owner,
    isReady: () => postgresAnswers({ host: "127.0.0.1", port, user: superuser, database: superuser }),
  };
  let child;
  try {
    if (standbyOf === undefined) initialise(bin, data, owner);
    else copy(bin, data, owner, standbyOf);
    child = await startServer(command);
  } catch (error) {
    folder.remove();
    throw error;
  }
  return {
    url: `postgres://${superuser}@127.0.0.1:${port}/${superuser}`,
    port,
    get pid() {
      return child.pid;
    },
    stop: (mode = "fast") => endProcess(child, shutdownSignals[mode]),
    async start() {
      child = await startServer(command);
    },
    async close() {
      await endProcess(child, "SIGINT");
      folder.remove();
    },
  };
}

/**
 * Whether a PostgreSQL lets `user` into `database` without a password: the start-up message of its protocol, version 3.0,
 * without the driver, whose import alone takes longer.
 */
export async function postgresAnswers({ host, port, user, database, timeoutMs }) {
  const parameters = Buffer.from(`user\0${user}\0database\0${database}\0\0`);
  const head = Buffer.alloc(8);
  head.writeInt32BE(head.length + parameters.length, 0);
  head.writeInt32BE(0x0003_0000, 4);
  const request = Buffer.concat([head, parameters]);
  // The first message is R (authentication), with 0 where nothing more is asked for, or E, an error. After R the database can
  // still be refused, until Z says that the backend is ready.
  const isAdmitted = (answer) => answer[0] === 0x52 && answer.readInt32BE(5) === 0;
  const isReady = (answer) => answer.at(-6) === 0x5a;
  const isEnough = (answer) => answer.length >= 9 && (!isAdmitted(answer) || isReady(answer));
  const answer = await ask({ host, port, request, isEnough, timeoutMs });
  return answer !== undefined && isAdmitted(answer) && isReady(answer);
}

const usualSettings = {
  listen_addresses: "127.0.0.1",
  unix_socket_directories: "",
  max_connections: 100,
  // Small and quiet: several of them run beside the tests.
  shared_buffers: "32MB",
  logging_collector: "off",
};

function settingArgs(settings) {
  return Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
}

function initialise(bin, data, owner) {
  const args = ["-D", data, "-U", superuser, "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"];
  runTool(path.join(bin, "initdb"), args, data, owner);
}

function copy(bin, data, owner, { url }) {
  const args = ["-D", data, "-d", url, "-X", "stream", "-c", "fast", "--write-recovery-conf", "--no-sync"];
  // Beside the server itself, of its version: `bin` may hold links to a few of its programs.
  const folder = path.dirname(realpathSync(path.join(bin, "postgres")));
  runTool(path.join(folder, "pg_basebackup"), args, data, owner);
}

function runTool(tool, args, data, owner) {
  const { status, stderr, error } = spawnSync(tool, args, {
    ...owner,
    cwd: path.dirname(data),
    encoding: "utf8",
  });
  if (status !== 0) throw error ?? new Error(`${path.basename(tool)} ended with ${status}: ${stderr}`);
}
