import { existsSync } from "node:fs";
import { createServer, type AddressInfo, type Server } from "node:net";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "@jest/globals";
import { freePort } from "@countersign/test-support/servers/private-process.mjs";
import { expectRun, type Run, run, spawnCli, temporaryFolder } from "./cli-bench.ts";
import { installedWith } from "./installed-with.ts";
import { engines, hold, onEngines, type OperatorBench, platformDatabase } from "./operator-bench.ts";

const folder = temporaryFolder();
const file = (name: string): string => join(folder, name);

function spawned(args: readonly string[], env: Readonly<Record<string, string>>, cli?: string): Promise<Run> {
  return spawnCli(args, { env, cwd: folder, cli });
}

describe("the built command line", () => {
  test("takes the store from STORE_URL, and a relative path from its folder", async () => {
    platformDatabase(file("environment.db"));
    const { code, out, err } = await spawned(["keys", "held"], { STORE_URL: "sqlite:environment.db" });
    expect({ code, err }).toEqual({ code: 1, err: "" });
    expect(out).toMatch(/^key\n.*\n {2}why +why\n {2}fence +\d{16}$/m);
  });

  test("asks nobody when its input is a pipe", async () => {
    platformDatabase(file("pipe.db"));
    const resolve = ["keys", "resolve", "key", "--as", "released"];
    expectRun(await spawned(resolve, { STORE_URL: "sqlite:pipe.db" }), 2, { err: /add --yes/ });
    expect((await run(["keys", "held", "--store-url", `sqlite:${file("pipe.db")}`])).out).toMatch(/^key$/m);
  });

  describe.each(["postgres", "mysql", "redis"])("on a server of %s", (scheme) => {
    test("that refuses connections ends with 3 and one line", async () => {
      const port = await freePort();
      const store = { STORE_URL: `${scheme}://user:s3cret@127.0.0.1:${port}/0` };
      const { code, out, err } = await spawned(["keys", "held"], store);
      expect({ code, out }).toEqual({ code: 3, out: "" });
      expect(err).toMatch(/^error: \S+ cannot be reached: the connection was refused \(ECONNREFUSED\)\n$/);
      expect(err).not.toContain("s3cret");
    });

    test.each<[string, (server: Server) => void]>([
      ["never answers", () => {}],
      [
        "answers something else",
        (server) => server.on("connection", (socket) => socket.end("HTTP/1.1 400 Bad\r\n\r\n")),
      ],
      ["closes the connection", (server) => server.on("connection", (socket) => socket.destroy())],
    ])("that %s ends with 3 and one line", async (_name, prepare) => {
      const server = createServer((socket) => socket.on("error", () => {}).resume());
      prepare(server);
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
      try {
        const store = {
          STORE_URL: `${scheme}://user:s3cret@127.0.0.1:${(server.address() as AddressInfo).port}/0`,
        };
        const { code, out, err } = await spawned(["keys", "held"], store);
        expect({ code, out }).toEqual({ code: 3, out: "" });
        expect(err).toMatch(/^error: [^\n]*\n$/);
        expect(err).not.toContain("s3cret");
      } finally {
        server.close();
      }
    });
  });
});

const redis = engines.filter(({ name }) => name === "Redis");
onEngines(redis, "the built command line with redis 5", (bench) => {
  test("lists and resolves", async () => {
    const cli = installedWith({ redis: "redis-5" }, folder);
    await hold(bench, "key");
    const env = { STORE_URL: bench.url };
    const flags = bench.flags.slice(2);
    const listed = await spawned(["keys", "held", ...flags], env, cli);
    expect(listed).toMatchObject({ code: 1, out: expect.stringMatching(/^ {2}why +/m), err: "" });
    const resolve = ["keys", "resolve", "key", "--as", "done", ...(await decided(bench)), ...flags];
    expect(await spawned(resolve, env, cli)).toMatchObject({ code: 0, err: "" });
    expect(await bench.idempotency.read("key")).toMatchObject({ state: "done" });
  });
});

/** What is needed to resolve the key without a terminal. */
async function decided({ idempotency }: OperatorBench): Promise<readonly string[]> {
  const { fence = 0 } = (await idempotency.read("key")) ?? {};
  return ["--note", "TICKET-1", "--fence", String(fence), "--yes"];
}

onEngines(engines, "a process", (bench) => {
  // A connection that stayed open would keep it alive.
  test.each([
    [["keys", "resolve", "key", "--as", "done"], 0],
    [["keys", "resolve", "other", "--as", "done"], 1],
    [["keys", "restore", "payout:other", "--note", "n", "--yes"], 0],
    [["prune"], 0],
  ])("%j ends by itself", async (command, code) => {
    await hold(bench, "key");
    const args = command.includes("resolve") ? [...command, ...(await decided(bench))] : command;
    const [, url = "", ...names] = bench.flags;
    const err = code === 0 ? "" : expect.stringMatching(/^error: [^\n]*\n$/);
    expect(await spawned([...args, ...names], { STORE_URL: url })).toMatchObject({ code, err });
  });
});

test.each([
  ["postgres", ["pg", "postgres"]],
  ["mysql", ["mysql2"]],
  ["redis", ["redis"]],
])("a store on %s says to install a driver of %j, without which SQLite works", async (scheme, drivers) => {
  const cli = installedWith(Object.fromEntries(drivers.map((name) => [name, undefined])), folder);
  const store = { STORE_URL: `${scheme}://user:s3cret@127.0.0.1:1/0` };
  expect(await spawned(["keys", "held"], store, cli)).toMatchObject({
    code: 2,
    err: `error: --store-url: this engine needs the package ${drivers.join(" or ")}; run npm install ${drivers.join(", or npm install ")}\n`,
  });
  const url = platformDatabase(file(`${scheme}.db`));
  expect(await spawned(["keys", "held"], { STORE_URL: url }, cli)).toMatchObject({ code: 1, err: "" });
});

describe("without @countersign/devtools, countersign", () => {
  let cli: string;
  beforeAll(() => {
    cli = installedWith({ "@countersign/devtools": undefined }, folder);
  });
  const without = (args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Run> =>
    spawned(args, env, cli);

  test.each<[string, readonly string[]]>([
    ["keygen", ["--out", "keys"]],
    ["payout", ["--url", "http://127.0.0.1:1/", "--key", "key.pem", "--keyid", "test"]],
    ["webhook", ["--url", "https://127.0.0.1:1/", "--username", "u", "--password", "p", "--secret", "s"]],
    ["sandbox", []],
    ["trigger", ["any.event", "--url", "http://127.0.0.1:1", "--api-key", "key"]],
  ])("%s says what to install", async (command, args) => {
    expect(await without([command, ...args])).toEqual({
      code: 2,
      out: "",
      err:
        `error: ${command} needs the package @countersign/devtools, which plays the lending service; ` +
        "run npm install --save-dev @countersign/devtools\n",
    });
    expect(existsSync(join(folder, "keys"))).toBe(false);
  });

  test("operates a store, and helps", async () => {
    const url = platformDatabase(join(folder, "platform.db"));
    expectRun(await without(["keys", "held"], { STORE_URL: url }), 1, { out: /^ {2}why +/m });
    expect(await without(["migrate", "--print"])).toMatchObject({ code: 0, err: "" });
    expect(await without(["payout", "--help"])).toMatchObject({ code: 0, err: "" });
    const endpoint = ["endpoint", "create", "--base-url", "https://127.0.0.1:1", "--generate"];
    const generated = [...endpoint, "--platform-url", "https://platform.example", "--retries", "0"];
    expect(await without(generated, { COUNTERSIGN_API_KEY: "key" })).toMatchObject({ code: 3 });
  });
});

describe.each<[string, readonly string[], string]>([
  ["sqlite:platform.db", ["@countersign/store-sql", "libsql"], "@countersign/store-sql libsql"],
  ["postgres://u:s3cret@127.0.0.1:1/d", ["@countersign/store-sql"], "@countersign/store-sql pg"],
  ["mysql://u:s3cret@127.0.0.1:1/d", ["@countersign/store-sql"], "@countersign/store-sql mysql2"],
  ["redis://:s3cret@127.0.0.1:1", ["@countersign/store-redis"], "@countersign/store-redis redis"],
])("the store %s", (url, packages, install) => {
  test.each(packages)("needs %s, and the command says so", async (missing) => {
    const cli = installedWith({ [missing]: undefined }, folder);
    const err = `error: --store-url: this engine needs the package ${missing}; run npm install ${install}\n`;
    const prune = await spawnCli(["prune"], { env: { STORE_URL: url }, cwd: folder, cli });
    expect(prune).toEqual({ code: 2, out: "", err });
    const migrate = await spawnCli(["migrate", "--print"], { env: { STORE_URL: url }, cwd: folder, cli });
    if (url.startsWith("redis"))
      expect(migrate).toMatchObject({ code: 2, err: expect.stringMatching(/no tables/) });
    else expect(migrate).toEqual({ code: 2, out: "", err });
    expect(await spawnCli(["--help"], { env: {}, cwd: folder, cli })).toMatchObject({ code: 0, err: "" });
  });
});
