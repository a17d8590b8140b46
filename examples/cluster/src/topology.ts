import {
  type DemoPlatform,
  type DemoSetup,
  DemoStartError,
  listedIp,
  prepareDemo,
  startDemoPlatform,
} from "@countersign/example-demo";
import type { Environment } from "@countersign/example-settings";
import { startRoundRobin, type RoundRobin } from "./round-robin.ts";

/** Two platforms that share their stores, behind a proxy. */
export interface Cluster {
  /** The proxy's. */
  readonly url: string;
  readonly proxy: RoundRobin;
  readonly platforms: readonly DemoPlatform[];
  readonly setup: DemoSetup;
  stop(): Promise<void>;
}

/** What a {@link Cluster} is started with. */
export interface ClusterInit {
  /** For key files and logs. */
  readonly folder: string;
  /** Of the proxy, on 127.0.0.1; 0 takes any. */
  readonly port: number;
  /** Where the platforms keep everything. */
  readonly store: Environment;
}

const size = 2;

/** Starts the platforms and the proxy. Throws a DemoStartError, or a SettingError when the port is in use. */
export async function startCluster({ folder, port, store }: ClusterInit): Promise<Cluster> {
  const setup = prepareDemo(folder);
  const env = {
    ...setup.env,
    ...store,
    PORT: "0",
    // The proxy's. Who calls is what it says.
    TRUST_PROXY: "127.0.0.1",
    PAYOUT_ALLOWED_IPS: listedIp,
  };
  const platforms = await startAll(env, setup.logFile);
  const stopAll = async (): Promise<void> => {
    await Promise.all(platforms.map((platform) => platform.stop()));
  };
  let proxy: RoundRobin;
  try {
    const targets = platforms.map(({ url }) => url);
    proxy = await startRoundRobin({ targets, port, callerAddress: listedIp });
  } catch (error) {
    await stopAll();
    throw error;
  }
  return {
    url: proxy.url,
    proxy,
    platforms,
    setup,
    async stop() {
      await proxy.close();
      await stopAll();
    },
  };
}

async function startAll(env: Environment, logFile: string): Promise<readonly DemoPlatform[]> {
  const starts = Array.from({ length: size }, () => startDemoPlatform(env, logFile));
  const outcomes = await Promise.allSettled(starts);
  const platforms = outcomes.flatMap((outcome) => (outcome.status === "fulfilled" ? [outcome.value] : []));
  const failed = outcomes.find((outcome) => outcome.status === "rejected");
  if (failed === undefined) return platforms;
  await Promise.all(platforms.map((platform) => platform.stop()));
  throw failed.reason instanceof Error ? failed.reason : new DemoStartError(String(failed.reason));
}
