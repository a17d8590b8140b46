import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type AddressInfo, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "@jest/globals";
import { describeOnRedis } from "@countersign/test-support/servers/engines.ts";
import { run, type Run } from "./cli-bench.ts";
import { installedWith } from "./installed-with.ts";
import { engines, hold, platformDatabase, spawnCli } from "./operator-bench.ts";

const folder = mkdtempSync(join(tmpdir(), "countersign-operator-processes-"));
const file = (name: string): string => join(folder, name);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Runs the built command line in the folder. */
function spawned(args: readonly string[], env: Readonly<Record<string, string>>, cli?: string): Promise<Run> {
  return spawnCli(args, { env, cwd: folder, cli });
}

describe("the built command line", () => {
  test("takes the store from STORE_URL, and a relative path from its folder", async () => {
    platformDatabase(file("environment.db"));
    const { code, out, err } = await spawned(["keys", "held"], { STORE_URL: "sqlite:environment.db" });
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(out).toMatch(/^key\n.*\n {2}why +why\n {2}fence +\d{16}$/m);
  }, 20_000);

  test("asks nobody when its input is a pipe", async () => {
    platformDatabase(file("pipe.db"));
    const resolve = ["keys", "resolve", "key", "--as", "released"];
    expect(await spawned(resolve, { STORE_URL: "sqlite:pipe.db" })).toMatchObject({
      code: 2,
      err: expect.stringMatching(/add --yes/),
    });
    expect((await run(["keys", "held", "--store-url", `sqlite:${file("pipe.db")}`])).out).toMatch(/^key$/m);
  }, 20_000);

  test.each([
    ["postgres", "pg"],
    ["redis", "redis"],
  ])(
    "says what to install when it needs a driver for %s that is missing",
    async (scheme, driver) => {
      const cli = installedWith({ [driver]: undefined }, folder);
      const store = { STORE_URL: `${scheme}://user:s3cret@127.0.0.1:1/0` };
      const { code, err } = await spawned(["keys", "held"], store, cli);
      expect({ code, err }).toEqual({
        code: 2,
        err: `error: --store-url: this engine needs the package ${driver}; run npm install ${driver}\n`,
      });
      platformDatabase(file(`${driver}.db`));
      expect(await spawned(["keys", "held"], { STORE_URL: `sqlite:${driver}.db` }, cli)).toMatchObject({
        code: 0,
      });
    },
    20_000,
  );

  describe.each(["postgres", "redis"])("on a server of %s", (scheme) => {
    test("that refuses connections ends with 3 and one line", async () => {
      const port = await freePort();
      const store = { STORE_URL: `${scheme}://user:s3cret@127.0.0.1:${port}/0` };
      const { code, out, err } = await spawned(["keys", "held"], store);
      expect({ code, out }).toEqual({ code: 3, out: "" });
      expect(err).toMatch(/^error: \S+ cannot be reached: the connection was refused \(ECONNREFUSED\)\n$/);
      expect(err).not.toContain("s3cret");
    }, 20_000);

    test.each<[string, (server: Server) => void]>([
      ["never answers", () => {}],
      [
        "answers something else",
        (server) => server.on("connection", (socket) => socket.end("HTTP/1.1 400 Bad\r\n\r\n")),
      ],
      ["closes the connection", (server) => server.on("connection", (socket) => socket.destroy())],
    ])(
      "that %s ends with 3 and one line",
      async (_name, prepare) => {
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
      },
      20_000,
    );
  });
});

describeOnRedis("the built command line with redis 5", () => {
  test("lists and resolves", async () => {
    const engine = engines.find(({ name }) => name === "Redis");
    if (engine === undefined) throw new Error("Redis is no engine");
    const bench = await engine.open();
    try {
      const cli = installedWith({ redis: "redis-5" }, folder);
      await hold(bench, "key");
      const env = { STORE_URL: bench.url };
      const flags = bench.flags.slice(2);
      const listed = await spawned(["keys", "held", ...flags], env, cli);
      expect(listed).toMatchObject({ code: 0, out: expect.stringMatching(/^ {2}why +/m), err: "" });
      const resolve = ["keys", "resolve", "key", "--as", "done", "--yes", ...flags];
      expect(await spawned(resolve, env, cli)).toMatchObject({ code: 0, err: "" });
      expect(await bench.idempotency.read("key")).toMatchObject({ state: "done" });
    } finally {
      await bench.close();
    }
  }, 20_000);
});

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}
