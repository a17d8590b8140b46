import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { expect, test } from "@jest/globals";
import { describeOnRedis, redisUrl } from "@countersign/test-support/servers/engines.ts";
import { afterTest, newStores } from "./connections.ts";

const racer = fileURLToPath(new URL("children/racer.mjs", import.meta.url));
const count = 500;

describeOnRedis("two processes that claim the same keys and nonces", () => {
  test.each([
    ["both with redis", ["redis", "redis"]],
    ["one with redis, one with ioredis", ["redis", "ioredis"]],
  ])("win each exactly once, %s", async (_case, drivers) => {
    const { prefix, idempotency, nonces } = await newStores();
    const racers = drivers.map((driver, index) =>
      fork(racer, [redisUrl ?? "", prefix, `racer-${index}`, driver, String(count)]),
    );
    for (const child of racers) afterTest(() => child.kill("SIGKILL"));
    await Promise.all(racers.map((child) => once(child, "message")));
    const results = racers.map((child) => once(child, "message"));
    for (const child of racers) child.send("go");
    const won = (await Promise.all(results)).map(
      ([result]) => result as { keys: number[]; nonces: number[] },
    );
    for (const winners of [won.flatMap(({ keys }) => keys), won.flatMap((result) => result.nonces)]) {
      expect(winners).toHaveLength(count);
      expect(new Set(winners).size).toBe(count);
    }
    // As a third one sees it; this also notes the keys, to be removed.
    const claim = { token: "late", fingerprint: "f", leaseMs: 60_000, recovery: "rerun" } as const;
    const late = Array.from({ length: count }, async (_, index) => [
      (await idempotency.claim(`key-${index}`, claim)).status,
      await nonces.claim({ scope: "keyid", nonce: `nonce-${index}`, token: "late", retainMs: 60_000 }),
    ]);
    expect(new Set((await Promise.all(late)).flat())).toEqual(new Set(["done", "seen"]));
  });
});
