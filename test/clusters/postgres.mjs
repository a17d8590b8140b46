// A PostgreSQL primary and two standbys, of which any one has to confirm each commit.
import { readFileSync } from "node:fs";
import process from "node:process";
import { setTimeout as delay } from "node:timers/promises";
import { startPostgresServer } from "../support/servers/postgres-server.mjs";
import { Client } from "pg";

const names = ["n1", "n2", "n3"];
const askWithinMs = 3_000;
const joinWithinMs = 60_000;

const settings = {
  // A server's own name is none of its standbys'.
  synchronous_standby_names: "ANY 1 (n1, n2, n3)",
  wal_keep_size: "256MB",
  wal_receiver_status_interval: "1s",
  wal_retrieve_retry_interval: "200ms",
};

/** Undefined where the programs are missing. */
export async function startPostgres() {
  const nodes = names.map(newNode);
  let [primary] = nodes;
  const close = async () => {
    await Promise.all(nodes.map((node) => node.close()));
  };
  const untilFollowed = async () => {
    const text = "SELECT count(*)::int AS count FROM pg_stat_replication WHERE state = 'streaming'";
    for (const end = Date.now() + joinWithinMs; Date.now() < end; await delay(100)) {
      if ((await primary.ask(text))?.[0]?.count === names.length - 1) return true;
    }
    return false;
  };
  /** Of the standbys that live, the one that has received more has whatever was answered. */
  const failOver = async () => {
    const standbys = nodes.filter((node) => node.isRunning);
    const received = await Promise.all(standbys.map(receivedBy));
    const most = received.reduce((best, lsn) => (lsn > best ? lsn : best));
    primary = standbys[received.indexOf(most)];
    await primary.ask("SELECT pg_promote(true, 30)");
    for (const node of standbys) {
      if (node === primary) continue;
      const follow = `host=127.0.0.1 port=${primary.port} user=postgres`;
      await node.ask(`ALTER SYSTEM SET primary_conninfo = '${follow}'`);
      await node.ask("SELECT pg_reload_conf()");
    }
  };
  try {
    if (!(await primary.start())) return undefined;
    for (const node of nodes) if (node !== primary) await node.start(primary);
    if (!(await untilFollowed())) throw new Error("the standbys do not follow");
  } catch (error) {
    await close();
    throw error;
  }
  return {
    engine: "postgres",
    nodes,
    takesWrites: async (node) =>
      (await node.ask("SELECT pg_is_in_recovery() AS is_standby"))?.[0]?.is_standby === false,
    async kill(node) {
      await node.kill();
      if (node === primary) await failOver();
    },
    async start(node) {
      // What a primary that has died had alone is nobody's: it comes back as a copy of the new one.
      await node.close();
      await node.start(primary);
      return untilFollowed();
    },
    victims: async () => [primary],
    close,
  };
}

function newNode(name) {
  let server;
  let isRunning = false;
  let session;
  let asking = Promise.resolve();
  const node = {
    name,
    get isRunning() {
      return isRunning;
    },
    get port() {
      return server?.port;
    },
    get url() {
      return server?.url;
    },
    /** False where the programs are missing. */
    async start(followed) {
      const own = { ...settings, cluster_name: name };
      const standbyOf = followed && { url: followed.url };
      server = await startPostgresServer({ settings: own, standbyOf });
      isRunning = server !== undefined;
      return isRunning;
    },
    /** Rows of a statement. Undefined where there is no answer in time. */
    ask(text) {
      const answer = asking.then(() => askNow(text));
      asking = answer;
      return answer;
    },
    /** Ends a session of the platform's. */
    async killSession(random) {
      const text =
        "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND application_name <> 'countersign-nodes'";
      const sessions = (await node.ask(text)) ?? [];
      if (sessions.length === 0) return false;
      return (await node.ask(`SELECT pg_terminate_backend(${random.pick(sessions).pid})`)) !== undefined;
    },
    /** With its children, which would go on for a moment. */
    async kill() {
      isRunning = false;
      const { pid } = server;
      const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ");
      const ending = server.stop("kill");
      for (const child of children) kill(Number(child));
      await ending;
    },
    async close() {
      isRunning = false;
      await endSession(session);
      session = undefined;
      await server?.close();
      server = undefined;
    },
  };
  return node;

  async function askNow(text) {
    if (!isRunning) return undefined;
    try {
      session ??= connectTo(server.url);
      return (await (await session).query(text)).rows;
    } catch {
      const lost = session;
      session = undefined;
      await endSession(lost);
      return undefined;
    }
  }
}

async function receivedBy(node) {
  const text =
    "SELECT pg_wal_lsn_diff(greatest(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn()), '0/0')::text AS received";
  const [row] = (await node.ask(text)) ?? [];
  if (row === undefined) throw new Error(`${node.name} does not say what it has received`);
  return BigInt(row.received);
}

async function connectTo(url) {
  const client = new Client({
    connectionString: url,
    application_name: "countersign-nodes",
    connectionTimeoutMillis: askWithinMs,
    // pg_promote waits for as long as 30 seconds.
    query_timeout: 10 * askWithinMs,
  });
  client.on("error", () => {});
  await client.connect();
  return client;
}

async function endSession(session) {
  await session?.then((client) => client.end()).catch(() => {});
}

function kill(pid) {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has ended already.
  }
}
