import { redisCommand } from "@countersign/test-support/servers/redis-server.mjs";
import { startPrivateRedis } from "@countersign/test-support/servers/private-redis.ts";
import { afterAll, describe, expect, test } from "@jest/globals";
import { run } from "./cli-bench.ts";

const server = await startPrivateRedis({ args: ["--replica-read-only", "no"] });
afterAll(() => server?.close());

const describeOnServer = server === undefined ? describe.skip : describe;

describeOnServer("a Redis replica whose primary server is gone", () => {
  const at = ["--store-url", server?.url ?? ""];

  test.each([[["keys", "held", "--quiet"]], [["keys", "restore", "payout:k", "--yes", "--note", "N"]]])(
    "is refused by %j: it knows of nothing since, and nobody hears of what it takes",
    async (command) => {
      expect((await run([...command, ...at])).code).toBe(0);
      const { port = 0 } = server ?? {};
      await redisCommand({ host: "127.0.0.1", port, command: "REPLICAOF 127.0.0.1 1" });
      const { code, out, err } = await run([...command, ...at]);
      expect({ code, out }).toEqual({ code: 1, out: "" });
      expect(err).toMatch(/is a replica; connect to the primary server/);
      await redisCommand({ host: "127.0.0.1", port, command: "REPLICAOF NO ONE" });
    },
  );
});

describeOnServer("keys held under a prefix that has no key", () => {
  const { port = 0, url = "" } = server ?? {};
  const held = ["keys", "held", "--quiet", "--store-url", url];

  test("names the prefixes that have some, and takes no other program's keys for some", async () => {
    await redisCommand({ host: "127.0.0.1", port, command: "SET app:key:1 text" });
    await redisCommand({ host: "127.0.0.1", port, command: "HSET app:two:key:1 field text" });
    expect((await run([...held, "--prefix", "mistyped"])).err).not.toContain("app");
    const restore = ["keys", "restore", "payout:k", "--yes", "--note", "N", "--store-url", url];
    expect((await run([...restore, "--prefix", "the-platform:a"])).code).toBe(0);
    const { code, out, err } = await run([...held, "--prefix", "mistyped"]);
    expect({ code, out }).toEqual({ code: 0, out: "" });
    expect(err).toMatch(
      /no key at all; keys of such a store are also at (?=.*the-platform:a).* by --prefix\n$/,
    );
    expect(await run([...held, "--prefix", "the-platform:a"])).toEqual({ code: 0, out: "", err: "" });
  });
});
