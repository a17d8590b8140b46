// Three members of MySQL Group Replication on loopback. With one primary that member takes writes, with several each does.
import { execFileSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { rmSync } from "node:fs";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { privateFolder } from "../support/servers/private-process.mjs";
import { mysqlProgram, unprivilegedOwner } from "../support/servers/server-binaries.mjs";
import { copyData, newNode } from "./mysql-nodes.mjs";
import { lastingPort } from "./ports.mjs";

const count = 3;
const joinWithinMs = 120_000;
// Longer than a start takes that begins with the process: until then, a member that is OFFLINE is still about to join.
const startsWithinMs = 15_000;

/** Undefined where the program is missing. */
export async function startGroup({ isMultiPrimary }) {
  const program = mysqlProgram();
  const owner = unprivilegedOwner();
  if (program === undefined || owner === undefined) return undefined;
  const name = randomUUID();
  const places = await Promise.all(
    Array.from({ length: count }, async () => {
      const [port, group] = await Promise.all([lastingPort(), lastingPort()]);
      return { folder: privateFolder("group", owner), port, group };
    }),
  );
  const seeds = places.map(({ group }) => `127.0.0.1:${group}`).join(",");
  const dataOf = ({ folder }) => path.join(folder.path, "data");
  const common = (place) => [
    ...program.args,
    "--no-defaults",
    ...(program.settings ?? []),
    `--datadir=${dataOf(place)}`,
    "--innodb-buffer-pool-size=64M",
    "--innodb-redo-log-capacity=64M",
  ];
  const nodes = places.map((place, index) =>
    newNode({
      ...place,
      name: `n${index + 1}`,
      owner,
      command: program.command,
      argsOf: () => [
        ...common(place),
        ...usual(place),
        `--server-id=${index + 1}`,
        `--report-port=${place.port}`,
        `--loose-group-replication-group-name=${name}`,
        `--loose-group-replication-local-address=127.0.0.1:${place.group}`,
        `--loose-group-replication-group-seeds=${seeds}`,
        `--loose-group-replication-single-primary-mode=${isMultiPrimary ? "OFF" : "ON"}`,
        `--loose-group-replication-enforce-update-everywhere-checks=${isMultiPrimary ? "ON" : "OFF"}`,
      ],
      isReady: async (node) => (await node.ask("SELECT 1")) !== undefined,
    }),
  );
  const close = async () => {
    await Promise.all(nodes.map((node) => node.end("SIGKILL")));
    for (const { folder } of places) folder.remove();
  };
  const isMember = async (node) => {
    const text =
      "SELECT MEMBER_STATE AS state, @@GLOBAL.super_read_only AS read_only FROM performance_schema.replication_group_members WHERE MEMBER_ID = @@server_uuid";
    const [row] = (await node.ask(text)) ?? [];
    const state = row?.state ?? "without an answer";
    return { state, takesWrites: state === "ONLINE" && row.read_only === 0 };
  };
  const takesWrites = async (node) => (await isMember(node)).takesWrites;
  /** Rejects, and says what the member was last, when it does not join in time. */
  const untilOnline = async (node) => {
    const end = Date.now() + joinWithinMs;
    let state;
    let refusal = "none";
    let nextTry = Date.now() + startsWithinMs;
    while (Date.now() < end) {
      ({ state } = await isMember(node));
      if (state === "ONLINE") return;
      // As an operator does: a member whose start or recovery has failed stays out until it is told to join again.
      if (state === "ERROR" || (state === "OFFLINE" && Date.now() > nextTry)) {
        nextTry = Date.now() + startsWithinMs;
        for (const text of rejoin) {
          await node.tell(text).catch((error) => {
            refusal = `${text}: ${error.message}`;
          });
        }
      }
      await delay(200);
    }
    throw new Error(`${node.name} is ${state} after ${joinWithinMs} ms; last refusal: ${refusal}`);
  };
  try {
    const [first] = places;
    execFileSync(program.command, [...common(first), "--initialize-insecure"], {
      ...owner,
      cwd: first.folder.path,
      stdio: "pipe",
    });
    for (const place of places.slice(1)) copyData(dataOf(first), dataOf(place), owner);
    // By which it would have the name of the one that it is a copy of.
    for (const place of places) rmSync(path.join(dataOf(place), "auto.cnf"), { force: true });
    for (const node of nodes) await node.start("--loose-group-replication-start-on-boot=OFF");
    // Also of the member that begins: without it, it could not come back.
    for (const node of nodes) await node.tell(recovers);
    await nodes[0].tell("SET GLOBAL group_replication_bootstrap_group = ON");
    await nodes[0].tell("START GROUP_REPLICATION");
    await nodes[0].tell("SET GLOBAL group_replication_bootstrap_group = OFF");
    await untilOnline(nodes[0]);
    await untilWritable(nodes[0]);
    await nodes[0].tell("CREATE DATABASE test");
    for (const node of nodes.slice(1)) {
      await node.tell("START GROUP_REPLICATION");
      await untilOnline(node);
    }
  } catch (error) {
    await close();
    throw error;
  }
  return {
    engine: "mariadb",
    nodes,
    // In a run whose sessions were ended by KILL, a member of MySQL 9.7.4 waited for ever: "Waiting for Binlog Group Commit ticket".
    cutsLines: true,
    reads: "SET SESSION group_replication_consistency = 'BEFORE'",
    takesWrites,
    kill: (node) => node.end("SIGKILL"),
    async start(node) {
      await node.start("--loose-group-replication-start-on-boot=ON");
      await untilOnline(node);
      return true;
    },
    async victims() {
      if (isMultiPrimary) return nodes;
      const writable = await Promise.all(nodes.map(takesWrites));
      return nodes.filter((_node, index) => writable[index]);
    },
    close,
  };

  async function untilWritable(node) {
    while (!(await takesWrites(node))) await delay(100);
  }
}

const rejoin = ["STOP GROUP_REPLICATION", "START GROUP_REPLICATION"];

const recovers = "CHANGE REPLICATION SOURCE TO SOURCE_USER='root' FOR CHANNEL 'group_replication_recovery'";

function usual({ folder, port }) {
  return [
    `--port=${port}`,
    "--bind-address=127.0.0.1",
    "--report-host=127.0.0.1",
    `--socket=${path.join(folder.path, "socket")}`,
    `--pid-file=${path.join(folder.path, "pid")}`,
    `--tmpdir=${folder.path}`,
    "--mysqlx=OFF",
    "--secure-file-priv=NULL",
    "--gtid-mode=ON",
    "--enforce-gtid-consistency=ON",
    "--log-bin=binlog",
    "--relay-log=relay",
    // Nodes die by SIGKILL: the machine's cache keeps what they have written. With three nodes on one disk that flush each commit, a member
    // that comes back does not catch up with the load.
    "--innodb-flush-log-at-trx-commit=2",
    "--sync-binlog=0",
    "--max-connections=200",
    "--replica-parallel-workers=8",
    "--performance-schema-digests-size=100",
    "--performance-schema-max-table-instances=500",
    "--plugin-load-add=group_replication.so",
    // A node that is not in the group would take writes alone, on what it had.
    "--super-read-only=ON",
    "--loose-group-replication-ip-allowlist=127.0.0.1/8",
    "--loose-group-replication-recovery-get-public-key=ON",
    "--loose-group-replication-recovery-reconnect-interval=2",
    "--loose-group-replication-member-expel-timeout=0",
    // Otherwise COMMIT in a minority is never answered.
    "--loose-group-replication-unreachable-majority-timeout=20",
    "--loose-group-replication-exit-state-action=READ_ONLY",
    "--loose-group-replication-paxos-single-leader=OFF",
  ];
}
