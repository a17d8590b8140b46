import { chownSync, writeFileSync } from "node:fs";
import path from "node:path";
import { postgresAnswers } from "./postgres-server.mjs";
import {
  endProcess,
  freePort,
  privateFolder,
  startServer,
  type Owner,
  type PrivateFolder,
} from "./private-process.mjs";
import { pgbouncer, reportMissing, unprivilegedOwner } from "./server-binaries.mjs";

export interface PgBouncer {
  readonly url: string;
  readonly pid: number | undefined;
  close(): Promise<void>;
}

interface PoolOptions {
  readonly poolSize?: number;
  readonly mode?: "statement" | "transaction";
  /** Sent first on each connection to the server. */
  readonly connectQuery?: string | undefined;
}

/**
 * Puts a PgBouncer before the database of `postgresUrl`, in transaction mode unless another is named. It keeps no prepared statements.
 * Undefined, after a loud line, where it is not installed; with CI set that is an error.
 */
export async function startPgBouncer(
  postgresUrl: string,
  { poolSize = 10, mode = "transaction", connectQuery }: PoolOptions = {},
): Promise<PgBouncer | undefined> {
  const binary = pgbouncer();
  const owner = unprivilegedOwner();
  if (binary === undefined || owner === undefined) {
    reportMissing("PgBouncer", "tests behind a pool in transaction mode are skipped. Install pgbouncer.");
    return undefined;
  }
  const target = new URL(postgresUrl);
  const port = await freePort();
  const folder = privateFolder("pgbouncer", owner);
  const database = target.pathname.slice(1);
  const address = { host: "127.0.0.1", port, user: target.username, database };
  try {
    const settings = writeSettings({ folder, owner, target, port, poolSize, mode, connectQuery });
    const child = await startServer({
      command: binary,
      args: [settings],
      folder: folder.path,
      owner,
      isReady: () => postgresAnswers(address),
    });
    return {
      url: `postgres://${target.username}@127.0.0.1:${port}/${database}`,
      pid: child.pid,
      async close() {
        await endProcess(child, "SIGTERM");
        folder.remove();
      },
    };
  } catch (error) {
    folder.remove();
    throw error;
  }
}

interface Settings extends PoolOptions {
  readonly folder: PrivateFolder;
  readonly owner: Owner;
  readonly target: URL;
  readonly port: number;
}

// A password of the URL stands in the file, which only its owner can read, in a folder that only its owner can enter.
function writeSettings({ folder, owner, target, port, poolSize, mode, connectQuery }: Settings): string {
  const file = path.join(folder.path, "pgbouncer.ini");
  const login = [
    `host=${target.hostname}`,
    `port=${target.port || "5432"}`,
    `dbname=${target.pathname.slice(1)}`,
    `user=${decodeURIComponent(target.username)}`,
    ...(target.password === "" ? [] : [`password=${quoted(decodeURIComponent(target.password))}`]),
    ...(connectQuery === undefined ? [] : [`connect_query=${quoted(connectQuery)}`]),
  ];
  const lines = [
    "[databases]",
    `* = ${login.join(" ")}`,
    "[pgbouncer]",
    "listen_addr = 127.0.0.1",
    `listen_port = ${port}`,
    "unix_socket_dir =",
    "auth_type = any",
    `pool_mode = ${mode}`,
    `default_pool_size = ${poolSize}`,
    "max_client_conn = 1000",
    "",
  ];
  writeFileSync(file, lines.join("\n"), { mode: 0o600 });
  if (owner.uid !== undefined && owner.gid !== undefined) chownSync(file, owner.uid, owner.gid);
  return file;
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}
