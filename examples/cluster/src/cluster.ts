import { rmSync } from "node:fs";
import path from "node:path";
import {
  demoKeyid,
  DemoStartError,
  printedTable,
  lastingFolder,
  startDemoService,
  temporaryFolder,
} from "@countersign/example-demo";
import { assertFreePort, parsePort, SettingError } from "@countersign/example-settings";
import { onceSignalled } from "@countersign/example-settings/signals";
import { runClusterCases } from "./cases.ts";
import { openEngines, type ClusterEngines, type ClusterStore, type ServerStarters } from "./engines.ts";
import { startCluster, type Cluster } from "./topology.ts";

/** Where the cluster keeps its files when it goes on serving, and how it starts servers. */
export interface ClusterPlaces {
  readonly folder: string;
  readonly cwd: string;
  readonly servers: ServerStarters;
}

interface ClusterArguments {
  readonly isOnce: boolean;
  readonly store: ClusterStore;
}

/** What has to be ended. */
interface Ending {
  add(end: () => Promise<void>): void;
  /** Ends everything, the last first. Called again, it waits for the first call. */
  endAll(): Promise<void>;
}

/**
 * `npm run cluster`: two platforms on PostgreSQL and Redis behind a proxy, shown as a table, then serving until a signal. With
 * `--once` it works in a temporary folder on any port and ends after the table; `--store postgres` does without Redis. The exit
 * code is 0 when every case was as expected.
 */
export async function runCluster(args: readonly string[], places: ClusterPlaces): Promise<void> {
  const parsed = parseArguments(args);
  if (parsed === undefined) {
    const expected = "--once, --store redis (the default) or --store postgres";
    console.error(
      `npm run cluster: expected no argument, ${expected}, got ${JSON.stringify(args.join(" "))}`,
    );
    process.exitCode = 1;
    return;
  }
  const ending = createEnding();
  onceSignalled(() => void ending.endAll().then(() => process.exit()));
  try {
    await (parsed.isOnce
      ? demonstrateOnce(parsed, places, ending)
      : demonstrateAndServe(parsed, places, ending));
  } catch (error) {
    if (!(error instanceof DemoStartError || error instanceof SettingError)) throw error;
    console.error(error.message);
    process.exitCode = 1;
  } finally {
    await ending.endAll();
  }
}

function parseArguments(args: readonly string[]): ClusterArguments | undefined {
  let isOnce = false;
  let store: ClusterStore = "redis";
  for (let index = 0; index < args.length; index += 1) {
    const arg = args[index];
    const value = args[index + 1];
    if (arg === "--once") isOnce = true;
    else if (arg === "--store" && (value === "redis" || value === "postgres")) {
      store = value;
      index += 1;
    } else return undefined;
  }
  return { isOnce, store };
}

async function demonstrateOnce(
  { store }: ClusterArguments,
  places: ClusterPlaces,
  ending: Ending,
): Promise<void> {
  const folder = temporaryFolder("countersign-cluster-");
  ending.add(async () => rmSync(folder, { recursive: true, force: true }));
  await demonstrate({ store, places, ending, folder, port: 0 });
}

async function demonstrateAndServe(
  { store }: ClusterArguments,
  places: ClusterPlaces,
  ending: Ending,
): Promise<void> {
  const port = parsePort("PORT", process.env["PORT"] ?? "3000");
  // Before the key files of another demo on this port are replaced.
  if (port !== 0) await assertFreePort(port, "npm run cluster");
  const folder = lastingFolder(places.folder, `cluster-${port}`);
  const { cluster, engines } = await demonstrate({ store, places, ending, folder, port });
  console.log(instructions(cluster, engines, path.relative(places.cwd, folder) || "."));
  await Promise.all(cluster.platforms.map(({ ended }) => ended));
}

interface Demonstration {
  readonly store: ClusterStore;
  readonly places: ClusterPlaces;
  readonly ending: Ending;
  readonly folder: string;
  readonly port: number;
}

async function demonstrate({
  store,
  places,
  ending,
  folder,
  port,
}: Demonstration): Promise<{ readonly cluster: Cluster; readonly engines: ClusterEngines }> {
  const engines = await openEngines(store, process.env, places.servers);
  ending.add(() => engines.close());
  const cluster = await startCluster({ folder, port, store: engines.env });
  ending.add(() => cluster.stop());
  const service = await startDemoService();
  try {
    const results = await runClusterCases(cluster, service);
    const table = printedTable();
    for (const result of results) table.add(result);
    if (!table.end()) process.exitCode = 1;
  } finally {
    await service.close();
  }
  return { cluster, engines };
}

function createEnding(): Ending {
  const ends: (() => Promise<void>)[] = [];
  let ended: Promise<void> | undefined;
  const run = async (): Promise<void> => {
    for (let end = ends.pop(); end !== undefined; end = ends.pop()) {
      // oxlint-disable-next-line no-await-in-loop -- the platforms before their servers
      await end();
    }
  };
  return {
    add: (end) => void ends.push(end),
    endAll: () => (ended ??= run()),
  };
}

function instructions(
  { url, platforms, setup }: Cluster,
  { description }: ClusterEngines,
  place: string,
): string {
  const { path: route, authUsername, authPassword, signatureSecret } = setup.webhook;
  return [
    "",
    `listening on ${url} (Ctrl-C ends it), in front of`,
    ...platforms.map((platform) => `  ${platform.url}, process ${platform.pid}`),
    ...description.map((line) => `  ${line}`),
    "",
    "Send a payout by hand, from another terminal in this folder; --help shows the ways to spoil it:",
    `  npm run countersign -- payout --url ${url}/api/v1/transaction \\`,
    `    --key ${JSON.stringify(path.join(place, `${demoKeyid}.private.pem`))} --keyid ${demoKeyid}`,
    "Send a webhook by hand, with the credentials of this start:",
    `  npm run countersign -- webhook --url ${url}${route} --allow-http \\`,
    `    --username ${authUsername} \\`,
    `    --password ${authPassword} \\`,
    `    --secret ${signatureSecret}`,
    "End one process; the proxy goes on with the other:",
    `  kill -KILL ${platforms[0]?.pid}`,
    "See what was paid, and what the webhooks have changed:",
    ...["payouts", "state", "events"].map((what) => `  curl ${url}/inspect/${what}`),
    "Log of both processes:",
    `  ${path.join(place, "platform.log")}`,
  ].join("\n");
}
