import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, test } from "@jest/globals";
import { capture, killAll } from "../../examples/platform/test/platform-process.ts";
import { mysqlUrl, postgresUrl, redisUrl } from "../support/servers/engines.ts";

const program = fileURLToPath(new URL("soak.mjs", import.meta.url));
const seconds = Number(process.env["SOAK_SECONDS"] ?? "30");
const transactional = [
  "sqlite",
  ...(postgresUrl === undefined ? [] : ["postgres"]),
  ...(mysqlUrl === undefined ? [] : ["mariadb"]),
];
const engines = [...transactional, ...(redisUrl === undefined ? [] : ["redis"])];
const rows = [
  { modes: ["lease"], on: engines },
  { modes: ["transaction", "both"], on: transactional },
];

afterEach(killAll);

describe("soak.mjs", () => {
  test.each(rows)(
    "$modes: ends with one payout for each key on every engine, under kills and stops",
    async ({ modes, on }) => {
      const args = [program, "--seconds", String(seconds)];
      args.push("--engines", on.join(","), "--modes", modes.join(","));
      const env = { DATABASE_URL: postgresUrl ?? "", REDIS_URL: redisUrl ?? "", MYSQL_URL: mysqlUrl ?? "" };
      const soak = capture(process.execPath, args, { env });
      const code = await soak.ended;
      // The seed for another run of the same plan stands in the first line.
      expect({ code, report: soak.stdout(), errors: soak.stderr() }).toEqual({
        code: 0,
        report: expect.any(String),
        errors: expect.any(String),
      });
      for (const engine of on) for (const mode of modes) expectRealLoad(soak.stdout(), `${engine}, ${mode}`);
    },
    (seconds + 120) * 1_000,
  );
});

/** A soak in which nothing happened proves nothing. */
function expectRealLoad(report: string, place: string): void {
  const found = new RegExp(
    `^${place}: (\\d+) keys, (\\d+) payouts, .*, (\\d+) replays, (\\d+) kills, (\\d+) stops`,
    "m",
  ).exec(report);
  const [keys = 0, payouts = 0, replays = 0, kills = 0, stops = 0] = (found ?? []).slice(1).map(Number);
  expect({ place, payouts }).toEqual({ place, payouts: keys });
  // Few: a machine that is busy besides gets no further, and what is sound does not depend on how fast.
  expect(keys).toBeGreaterThanOrEqual(5);
  expect(replays).toBeGreaterThanOrEqual(1);
  expect(kills).toBeGreaterThanOrEqual(1);
  expect(stops).toBeGreaterThanOrEqual(1);
}
