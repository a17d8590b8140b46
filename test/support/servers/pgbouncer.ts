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

/**
 * Puts a PgBouncer in transaction mode before the database of `postgresUrl`. Undefined, after a loud line, where it is not
 * installed; with CI set that is an error.
 */
export async function startPgBouncer(
  postgresUrl: string,
  { poolSize = 10 }: { readonly poolSize?: number } = {},
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
    const settings = writeSettings({ folder, owner, target, port, poolSize });
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

interface Settings {
  readonly folder: PrivateFolder;
  readonly owner: Owner;
  readonly target: URL;
  readonly port: number;
  readonly poolSize: number;
}

// A password of the URL stands in the file, which only its owner can read, in a folder that only its owner can enter.
function writeSettings({ folder, owner, target, port, poolSize }: Settings): string {
  const file = path.join(folder.path, "pgbouncer.ini");
  const login = [
    `host=${target.hostname}`,
    `port=${target.port || "5432"}`,
    `dbname=${target.pathname.slice(1)}`,
    `user=${decodeURIComponent(target.username)}`,
    ...(target.password === "" ? [] : [`password=${quoted(decodeURIComponent(target.password))}`]),
  ];
  const lines = [
    "[databases]",
    `* = ${login.join(" ")}`,
    "[pgbouncer]",
    "listen_addr = 127.0.0.1",
    `listen_port = ${port}`,
    "unix_socket_dir =",
    "auth_type = any",
    "pool_mode = transaction",
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
