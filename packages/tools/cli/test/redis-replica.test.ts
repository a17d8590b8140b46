import { redisCommand } from "@countersign/test-support/servers/redis-server.mjs";
import { startPrivateRedis } from "@countersign/test-support/servers/private-redis.ts";
import { afterAll, describe, expect, test } from "@jest/globals";
import { run } from "./cli-bench.ts";

const server = await startPrivateRedis({ args: ["--replica-read-only", "no"] });
afterAll(() => server?.close());

(server === undefined ? describe.skip : describe)("a Redis replica whose primary server is gone", () => {
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
