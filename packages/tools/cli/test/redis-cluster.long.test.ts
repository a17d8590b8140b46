import { createRedisStores, type RedisStores } from "@countersign/store-redis";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { createClient, createCluster } from "redis";
import { freePort } from "@countersign/test-support/servers/private-process.mjs";
import { startPrivateRedis, startRedisCluster } from "@countersign/test-support/servers/private-redis.ts";
import { expectRun, run, spawnCli } from "./cli-bench.ts";
import { fingerprint } from "./operator-bench.ts";

const cluster = await startRedisCluster();
const busPort = String(await freePort());
const lone = await startPrivateRedis({
  args: ["--cluster-enabled", "yes", "--cluster-announce-ip", "127.0.0.1", "--cluster-port", busPort],
});
afterAll(async () => {
  await cluster?.close();
  await lone?.close();
});

// The set-up has said loudly that there is no redis-server, and fails with CI=true.
const describeOnCluster = cluster === undefined || lone === undefined ? describe.skip : describe;
const nodes = cluster?.nodes ?? [];
const keys = Array.from({ length: 40 }, (_none, at) => `key-${at}`);

async function hold({ idempotency }: RedisStores, key: string): Promise<void> {
  await idempotency.claim(key, { token: key, fingerprint, leaseMs: 60_000, recovery: "rerun" });
  await idempotency.hold(key, key, "why");
}

async function withStores(
  rootUrl: string,
  work: (stores: RedisStores) => Promise<void>,
  credentials: { password?: string } = {},
): Promise<void> {
  const client = createCluster({ rootNodes: [{ url: rootUrl }], defaults: credentials });
  await client.connect();
  try {
    const stores = createRedisStores({
      sendCommand: (command, { key, isReadonly }) => client.sendCommand(key, isReadonly, [...command]),
    });
    await work(stores);
    stores.close();
  } finally {
    client.destroy();
  }
}

function keysIn(out: string): unknown[] {
  const lines = out.split("\n").filter((line) => line !== "");
  return lines.map((line) => (JSON.parse(line) as { key?: unknown }).key).filter((key) => key !== undefined);
}

describeOnCluster("countersign keys on a Redis Cluster", () => {
  beforeAll(() =>
    withStores(nodes[0] ?? "", async (stores) => {
      for (const key of keys) await hold(stores, key);
    }),
  );

  test.each([0, 1, 2])("held lists the keys of every server, asked by server %d", async (at) => {
    const { code, out, err } = await run(["keys", "held", "--json", "--store-url", nodes[at] ?? ""]);
    expect({ code, err }).toEqual({ code: 1, err: "" });
    expect(keysIn(out)).toHaveLength(keys.length);
    expect(new Set(keysIn(out))).toEqual(new Set(keys));
  });

  test("list gives every key over pages that different servers were asked for", async () => {
    const listed: unknown[] = [];
    let more: string[] = [];
    let turns = 0;
    do {
      const url = nodes[turns % nodes.length] ?? "";
      const args = ["keys", "list", "--state", "held", "--limit", "5", "--json", "--store-url", url, ...more];
      const { code, out } = await run(args);
      expect(code).toBe(0);
      listed.push(...keysIn(out));
      const cursor = /\{"cursor":"([^"]+)"\}\n$/.exec(out)?.[1];
      more = cursor === undefined ? [] : ["--cursor", cursor];
      turns += 1;
    } while (more.length > 0);
    expect(turns).toBeGreaterThan(3);
    expect(new Set(listed)).toEqual(new Set(keys));
  });

  test.each(["0", "ffff:0", `${"0".repeat(40)}:0`, ":0"])(
    "a cursor %s of no server of it ends with 2",
    async (cursor) => {
      const args = ["keys", "list", "--state", "held", "--cursor", cursor, "--store-url", nodes[0] ?? ""];
      expectRun(await run(args), 2, { err: /^error: --cursor: [^\n]*\n$/ });
    },
  );

  test("resolve finds a key wherever it is", async () => {
    await withStores(nodes[0] ?? "", async (stores) => {
      for (const key of ["a", "b", "c", "d", "e", "f"]) {
        await hold(stores, key);
        const args = ["keys", "resolve", key, "--as", "done", "--yes", "--store-url", nodes[1] ?? ""];
        expect(await run(args)).toMatchObject({ code: 0, err: "" });
        expect(await stores.idempotency.read(key)).toMatchObject({ state: "done" });
      }
    });
  });

  test("ends by itself as a process of its own", async () => {
    const ended = await spawnCli(["keys", "held"], { env: { STORE_URL: nodes[0] ?? "" } });
    expect(ended).toMatchObject({ code: 1, err: "" });
  });
});

describeOnCluster("countersign keys on a Redis Cluster with a password", () => {
  const password = "s3cret:/@";
  const url = (secret: string): string => `redis://:${encodeURIComponent(secret)}@127.0.0.1:${lone?.port}`;

  beforeAll(async () => {
    const client = createClient({ url: lone?.url ?? "" });
    await client.connect();
    await client.sendCommand(["CLUSTER", "ADDSLOTSRANGE", "0", "16383"]);
    await client.configSet("requirepass", password);
    while (!(await client.clusterInfo()).includes("cluster_state:ok")) {
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    client.destroy();
    await withStores(url(password), (stores) => hold(stores, "key"), { password });
  });

  test("works where INFO is forbidden, as on a single server", async () => {
    const client = createClient({ url: url(password) });
    await client.connect();
    await client.aclSetUser("operator", ["on", ">s3cret", "~*", "+@all", "-info"]);
    client.destroy();
    const store = `redis://operator:s3cret@127.0.0.1:${lone?.port}`;
    const { code, out, err } = await run(["keys", "held", "--json", "--store-url", store]);
    expect({ code, err, keys: keysIn(out) }).toEqual({ code: 1, err: "", keys: ["key"] });
  });

  test("gives it to every server", async () => {
    const { code, out } = await run(["keys", "held", "--json", "--store-url", url(password)]);
    expect({ code, keys: keysIn(out) }).toEqual({ code: 1, keys: ["key"] });
  });

  test.each([
    ["a wrong one", "wr0ng-s3cret"],
    ["none", ""],
  ])("%s ends with 1 and one line without it", async (_name, secret) => {
    const { code, out, err } = await run(["keys", "held", "--store-url", url(secret)]);
    expect({ code, out }).toEqual({ code: 1, out: "" });
    expect(err).toMatch(/^error: redis:\/\/127\.0\.0\.1:\d+: [^\n]*\n$/);
    expect(err).not.toContain("s3cret");
  });
});
