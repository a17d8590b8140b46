import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, test } from "@jest/globals";
import { capture, killAll } from "../../examples/platform/test/platform-process.ts";
import { postgresUrl, redisUrl } from "../support/servers/engines.ts";

const program = fileURLToPath(new URL("soak.mjs", import.meta.url));
const seconds = Number(process.env["SOAK_SECONDS"] ?? "20");
const engines = [
  "sqlite",
  ...(redisUrl === undefined ? [] : ["redis"]),
  ...(postgresUrl === undefined ? [] : ["postgres"]),
];

afterEach(killAll);

describe("soak.mjs", () => {
  test(
    "ends with one payout for each key on every engine, under kills and stops",
    async () => {
      const args = [program, "--seconds", String(seconds), "--engines", engines.join(",")];
      const env = { DATABASE_URL: postgresUrl ?? "", REDIS_URL: redisUrl ?? "" };
      const soak = capture(process.execPath, args, { env });
      const code = await soak.ended;
      // The seed for another run of the same plan stands in the first line.
      expect({ code, report: soak.stdout(), errors: soak.stderr() }).toEqual({
        code: 0,
        report: expect.any(String),
        errors: expect.any(String),
      });
      for (const engine of engines) expectRealLoad(soak.stdout(), engine);
    },
    (seconds + 120) * 1_000,
  );
});

/** A soak in which nothing happened proves nothing. */
function expectRealLoad(report: string, engine: string): void {
  const found = new RegExp(
    `^${engine}: (\\d+) keys, (\\d+) payouts, .*, (\\d+) replays, (\\d+) kills, (\\d+) stops`,
    "m",
  ).exec(report);
  const [keys = 0, payouts = 0, replays = 0, kills = 0, stops = 0] = (found ?? []).slice(1).map(Number);
  expect({ engine, payouts }).toEqual({ engine, payouts: keys });
  expect(keys).toBeGreaterThanOrEqual(20);
  expect(replays).toBeGreaterThanOrEqual(10);
  expect(kills).toBeGreaterThanOrEqual(1);
  expect(stops).toBeGreaterThanOrEqual(1);
}
