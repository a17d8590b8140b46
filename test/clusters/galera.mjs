// Three nodes of MariaDB Galera on loopback. Every node takes writes.
import { existsSync, readFileSync } from "node:fs";
import { execFileSync, spawnSync } from "node:child_process";
import path from "node:path";
import { privateFolder } from "../support/servers/private-process.mjs";
import { mariadbPrograms, unprivilegedOwner } from "../support/servers/server-binaries.mjs";
import { copyData, newNode } from "./mysql-nodes.mjs";
import { lastingPort } from "./ports.mjs";

const provider = "/usr/lib/galera/libgalera_smm.so";
// A node that has nothing gets a copy by them.
const copiers = ["/usr/bin/wsrep_sst_rsync", "/usr/bin/rsync"];
const count = 3;

/** Undefined where the programs are missing. */
export async function startGalera() {
  const { install, server } = mariadbPrograms();
  const owner = unprivilegedOwner();
  if (install === undefined || server === undefined || owner === undefined) return undefined;
  if (![provider, ...copiers].every((file) => existsSync(file))) return undefined;
  const places = await Promise.all(Array.from({ length: count }, () => placeOf(owner)));
  const peers = places.map(({ group }) => `127.0.0.1:${group}`).join(",");
  const dataOf = ({ folder }) => path.join(folder.path, "data");
  const argsOf = (place, name) => [
    ...usual(place.folder.path, dataOf(place)),
    `--port=${place.port}`,
    "--wsrep-on=ON",
    `--wsrep-provider=${provider}`,
    "--wsrep-cluster-name=countersign",
    `--wsrep-node-name=${name}`,
    `--wsrep-node-address=127.0.0.1:${place.group}`,
    "--wsrep-sst-method=rsync",
    `--wsrep-sst-receive-address=127.0.0.1:${place.whole}`,
    // A node that is gone is known as gone after three seconds, not five.
    `--wsrep-provider-options=${[
      `base_port=${place.group}`,
      `gmcast.listen_addr=tcp://127.0.0.1:${place.group}`,
      `ist.recv_addr=127.0.0.1:${place.part}`,
      "gcache.size=64M",
      "evs.keepalive_period=PT0.5S",
      "evs.inactive_check_period=PT0.5S",
      "evs.suspect_timeout=PT3S",
      "evs.inactive_timeout=PT6S",
    ].join(";")}`,
  ];
  const nodes = places.map((place, index) => {
    const name = `n${index + 1}`;
    return newNode({
      ...place,
      name,
      owner,
      command: server,
      argsOf: () => argsOf(place, name),
      isReady: async (node) => (await statusOf(node)).wsrep_local_state_comment === "Synced",
    });
  });
  const close = async () => {
    await Promise.all(nodes.map((node) => node.end("SIGKILL")));
    for (const { folder } of places) folder.remove();
  };
  const isWhole = async (node) => Number((await statusOf(node)).wsrep_cluster_size) === count;
  try {
    const [first] = places;
    initialise(install, first.folder.path, dataOf(first), owner);
    for (const place of places.slice(1)) copyData(dataOf(first), dataOf(place), owner);
    await nodes[0].start("--wsrep-new-cluster", "--wsrep-cluster-address=gcomm://");
    await nodes[0].tell("CREATE DATABASE test");
    for (const node of nodes.slice(1)) await node.start(`--wsrep-cluster-address=gcomm://${peers}`);
  } catch (error) {
    await close();
    throw error;
  }
  return {
    engine: "mariadb",
    nodes,
    // What a session has to say before it reads what another node has committed.
    reads: "SET SESSION wsrep_sync_wait = 7",
    takesWrites: async (node) => (await statusOf(node)).wsrep_ready === "ON",
    kill: (node) => node.end("SIGKILL"),
    async start(node) {
      const { folder } = places[nodes.indexOf(node)];
      await node.start(`--wsrep-cluster-address=gcomm://${peers}`, ...positionOf(node, folder.path));
      return isWhole(node);
    },
    /** Of the nodes that a kill may meet. */
    victims: async () => nodes,
    close,
  };

  /** What a node that was killed has, so that it asks for the missing part alone, and not for a whole copy. */
  function positionOf({ name }, folder) {
    const state = path.join(folder, "data", "grastate.dat");
    if (!existsSync(state) || !/seqno:\s*-1/.test(readFileSync(state, "utf8"))) return [];
    const log = path.join(folder, "recovered.log");
    const place = places[nodes.findIndex((node) => node.name === name)];
    const recovery = [...argsOf(place, name), "--wsrep-cluster-address=gcomm://", "--wsrep-recover"];
    const { status } = spawnSync(server, [...recovery, `--log-error=${log}`], { ...owner, cwd: folder });
    if (status !== 0) return [];
    const found = [...readFileSync(log, "utf8").matchAll(/Recovered position:\s*(\S+)/g)].at(-1)?.[1];
    return found === undefined ? [] : [`--wsrep-start-position=${found}`];
  }
}

async function placeOf(owner) {
  const [port, group, part, whole] = await Promise.all(Array.from({ length: 4 }, lastingPort));
  return { folder: privateFolder("galera", owner), port, group, part, whole };
}

async function statusOf(node) {
  const rows = (await node.ask("SHOW GLOBAL STATUS LIKE 'wsrep%'")) ?? [];
  return Object.fromEntries(rows.map(({ Variable_name: name, Value: value }) => [name, value]));
}

function usual(folder, data) {
  return [
    "--no-defaults",
    `--datadir=${data}`,
    `--socket=${path.join(folder, "socket")}`,
    `--pid-file=${path.join(folder, "pid")}`,
    `--tmpdir=${folder}`,
    "--bind-address=127.0.0.1",
    "--innodb-buffer-pool-size=64M",
    "--innodb-log-file-size=32M",
    "--innodb-flush-log-at-trx-commit=1",
    "--binlog-format=ROW",
    "--innodb-autoinc-lock-mode=2",
    "--default-storage-engine=InnoDB",
    "--wsrep-slave-threads=2",
    "--max-connections=200",
  ];
}

function initialise(install, folder, data, owner) {
  const options = ["--auth-root-authentication-method=normal", "--skip-test-db", `--tmpdir=${folder}`];
  execFileSync(install, ["--no-defaults", `--datadir=${data}`, ...options], {
    ...owner,
    cwd: folder,
    stdio: "pipe",
  });
}
