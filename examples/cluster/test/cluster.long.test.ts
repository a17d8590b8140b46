import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import type { Environment } from "@countersign/example-settings";
import { afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";
import { Client } from "pg";
import { createClient } from "redis";
import {
  describeOnPostgres,
  describeOnRedis,
  isolatedName,
  postgresUrl,
  redisUrl,
} from "@countersign/test-support/servers/engines.ts";
import { startTcpProxy } from "@countersign/test-support/servers/tcp-proxy.ts";
import { openEngines } from "../src/engines.ts";
import { DemoStartError } from "@countersign/example-demo";
import {
  capture,
  killAll,
  listeningUrl,
  signalGroup,
  type Captured,
} from "../../platform/test/platform-process.ts";

const cluster = new URL("../dist/cluster.js", import.meta.url);
const none = async (): Promise<undefined> => undefined;

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "platform-cluster-"));
});

afterEach(async () => {
  await killAll();
  rmSync(folder, { recursive: true, force: true });
});

/** Runs the cluster on a machine that has no servers but those of `env`. */
function run(args: readonly string[], env: Environment): Captured {
  const script = `
    import { runCluster } from ${JSON.stringify(cluster.href)};
    const none = async () => undefined;
    const servers = { postgres: none, redis: none };
    const places = { folder: ${JSON.stringify(folder)}, cwd: ${JSON.stringify(folder)}, servers };
    await runCluster(${JSON.stringify(args)}, places);`;
  return capture(process.execPath, ["--input-type=module", "-e", script], {
    cwd: folder,
    env: { PORT: "0", ...env },
  });
}

describe("runCluster", () => {
  test.each<[string, readonly string[], Environment, RegExp]>([
    [
      "no PostgreSQL",
      [],
      { DATABASE_URL: undefined },
      /^npm run cluster: there is no PostgreSQL: install it .*DATABASE_URL.*docker compose -f examples\/cluster\/compose\.yaml up/,
    ],
    [
      "a PostgreSQL that does not answer",
      ["--once", "--store", "postgres"],
      { DATABASE_URL: "postgres://u:hunter2@127.0.0.1:1/x" },
      /^DATABASE_URL: expected a PostgreSQL that lets the platform in \(nobody listens there\); without DATABASE_URL, a PostgreSQL is started .*\n$/,
    ],
    ["a port that is none", [], { PORT: "abc" }, /^PORT: expected an integer/],
    [
      "no place for temporary files",
      ["--once"],
      { TMPDIR: "/nowhere/h" },
      /^TMPDIR: expected a folder .*ENOENT.*\n$/,
    ],
    ["an unknown argument", ["--twice"], {}, /^npm run cluster: expected no argument, --once/],
  ])("ends with 1 and says what to do about %s", async (_name, args, env, message) => {
    const running = run(args, env);
    expect(await running.ended).toBe(1);
    expect(running.stderr()).toMatch(message);
    expect(running.stderr()).not.toContain("hunter2");
    expect(running.stdout()).toBe("");
  });
});

describeOnPostgres("runCluster with a PostgreSQL", () => {
  test.each<[string, Environment, RegExp]>([
    ["no Redis", { REDIS_URL: "" }, /^npm run cluster: there is no Redis: install it .*REDIS_URL.*\n$/],
    [
      "a Redis that does not answer",
      { REDIS_URL: "redis://:hunter2@127.0.0.1:1" },
      /^REDIS_URL: expected a Redis that lets the platform in \(nobody listens there\); without REDIS_URL, a Redis is started .*\n$/,
    ],
  ])("ends with 1 and one line about %s", async (_name, env, line) => {
    const running = run(["--once"], { DATABASE_URL: postgresUrl, ...env });
    expect(await running.ended).toBe(1);
    expect(running.stderr()).toMatch(line);
    expect(running.stderr()).not.toContain("hunter2");
    expect(running.stdout()).toBe("");
  });

  test("ends with 1 and one line about a role that may create no schema", async () => {
    const client = new Client({ connectionString: postgresUrl });
    await client.connect();
    const role = isolatedName("role");
    try {
      await client.query(`CREATE ROLE ${role} LOGIN PASSWORD 'hunter2'`);
      const as = new URL(postgresUrl ?? "");
      as.username = role;
      as.password = "hunter2";
      const running = run(["--once", "--store", "postgres"], { DATABASE_URL: as.href });
      expect(await running.ended).toBe(1);
      expect(running.stderr()).toMatch(
        /^DATABASE_URL: expected a PostgreSQL in which a schema can be created \(the user lacks a privilege\); .*\n$/,
      );
    } finally {
      await client.query(`DROP ROLE IF EXISTS ${role}`);
      await client.end();
    }
  });
});

describeOnPostgres("runCluster without --once", () => {
  test("goes on serving until a signal, and leaves nothing behind", async () => {
    const client = new Client({ connectionString: postgresUrl });
    await client.connect();
    const schemas = async (): Promise<readonly unknown[]> =>
      (await client.query("SELECT nspname FROM pg_namespace WHERE nspname LIKE 'cluster\\_%'")).rows;
    try {
      const running = run(["--store", "postgres"], { DATABASE_URL: postgresUrl });
      const url = await listeningUrl(running);
      const name = /as (?<name>cluster_\w+)/.exec(running.stdout())?.groups?.["name"];
      expect(await schemas()).toContainEqual({ nspname: name });
      expect((await fetch(`${url}/readyz`)).status).toBe(200);
      signalGroup(running, "SIGINT");
      expect(await running.ended).toBe(0);
      await expect(fetch(`${url}/readyz`)).rejects.toThrow();
      expect(await schemas()).not.toContainEqual({ nspname: name });
    } finally {
      await client.end();
    }
  });
});

const describeOnBoth = postgresUrl === undefined ? describe.skip : describeOnRedis;

describeOnBoth("openEngines", () => {
  test("takes given servers under a name of its own, and shows no password", async () => {
    const behindProxy = new URL(postgresUrl ?? "");
    const line = await startTcpProxy(Number(behindProxy.port || 5432));
    behindProxy.port = String(line.port);
    behindProxy.password = "hunter2";
    const given = { DATABASE_URL: behindProxy.href, REDIS_URL: redisUrl };
    const engines = await openEngines("redis", given, { postgres: none, redis: none });
    const { STORE_URL, DATABASE_URL, STORE_SCHEMA = "", KEY_PREFIX } = engines.env;
    expect([STORE_URL, DATABASE_URL]).toEqual([redisUrl, behindProxy.href]);
    expect(STORE_SCHEMA).toMatch(/^cluster_[0-9a-f]{12}$/);
    expect(KEY_PREFIX).toBe(STORE_SCHEMA);
    expect(engines.description.join()).not.toContain("hunter2");
    // The database is gone: it is said, and does not keep the rest from being removed.
    await line.close();
    const client = await createClient({ url: redisUrl! }).connect();
    await client.set(`${KEY_PREFIX}:key:a`, "1");
    const told = jest.spyOn(console, "error").mockImplementation(() => {});
    await engines.close();
    expect(told.mock.calls).toEqual([
      [`DATABASE_URL: ${STORE_SCHEMA} could not be removed (nobody listens there)`],
    ]);
    told.mockRestore();
    expect(await client.exists(`${KEY_PREFIX}:key:a`)).toBe(0);
    await client.close();
    const database = new Client({ connectionString: postgresUrl });
    await database.connect();
    await database.query(`DROP SCHEMA ${STORE_SCHEMA}`);
    await database.end();
  });

  test("closes what it has started when the next server is missing", async () => {
    let closed = 0;
    const postgres = async () => ({
      url: "postgres://127.0.0.1:1/x",
      close: async () => {
        closed += 1;
      },
    });
    await expect(openEngines("redis", {}, { postgres, redis: none })).rejects.toThrow(DemoStartError);
    expect(closed).toBe(1);
  });
});
