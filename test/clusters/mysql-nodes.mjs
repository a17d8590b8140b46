// What nodes of Galera and of Group Replication have in common: a process each, a session of ours on it, and questions to it.
import { execFileSync } from "node:child_process";
import { cpSync } from "node:fs";
import { endProcess, startServer } from "../support/servers/private-process.mjs";
import { createConnection } from "mysql2/promise";

const askWithinMs = 3_000;
const joinWithinMs = 180_000;

/** A node's data folder from another one's that was never used. */
export function copyData(from, to, owner) {
  cpSync(from, to, { recursive: true, preserveTimestamps: true });
  if (owner.uid !== undefined) execFileSync("chown", ["-R", `${owner.uid}:${owner.gid}`, to]);
}

/** `argsOf()` gives what the process is started with; it is ready when `isReady(node)` says so. */
export function newNode({ name, command, argsOf, folder, owner, port, isReady }) {
  let child;
  let session;
  const node = {
    name,
    port,
    folder,
    url: `mysql://root@127.0.0.1:${port}/test`,
    get isRunning() {
      return child !== undefined;
    },
    /** Rows of a statement, on a session that has no database. Undefined where there is no answer in time. */
    async ask(text) {
      try {
        session ??= connectTo(port);
        const [rows] = await inTime((async () => (await session).query(text))());
        return rows;
      } catch {
        const lost = session;
        session = undefined;
        (await lost?.catch(() => {}))?.destroy();
        return undefined;
      }
    },
    /** Rejects where the server refuses. */
    async tell(text) {
      const connection = await connectTo(port);
      try {
        await connection.query(text);
      } finally {
        connection.destroy();
      }
    },
    async start(...further) {
      child = await startServer({
        command,
        args: [...argsOf(), ...further],
        folder: folder.path,
        owner,
        isReady: () => isReady(node),
        withinMs: joinWithinMs,
      });
    },
    async end(signal) {
      const ending = child;
      child = undefined;
      if (ending !== undefined) await endProcess(ending, signal);
      await node.ask("SELECT 1");
    },
    /** Ends a session of the platform's, which have a database; so have threads of the server that apply what others have committed. */
    async killSession(random) {
      const all = (await node.ask("SHOW PROCESSLIST")) ?? [];
      const sessions = all.filter(({ User: user, db }) => user === "root" && db === "test");
      if (sessions.length === 0) return false;
      return (await node.ask(`KILL ${random.pick(sessions).Id}`)) !== undefined;
    },
  };
  return node;
}

async function connectTo(port) {
  const connection = await createConnection({
    host: "127.0.0.1",
    port,
    user: "root",
    connectTimeout: askWithinMs,
  });
  connection.on("error", () => {});
  return connection;
}

function inTime(answer) {
  let timer;
  const late = new Promise((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error("no answer in time")), askWithinMs);
  });
  return Promise.race([answer, late]).finally(() => clearTimeout(timer));
}
