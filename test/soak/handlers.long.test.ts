// Handlers that do to their transaction what no handler should, on the engines whose statements can come from anywhere.
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, test } from "@jest/globals";
import { capture, killAll } from "../../examples/platform/test/platform-process.ts";
import { isOnMysqlAlone } from "../support/runs/share.ts";
import { mysqlUrl, postgresUrl } from "../support/servers/engines.ts";

const program = fileURLToPath(new URL("handlers.mjs", import.meta.url));
const seconds = Number(process.env["SOAK_SECONDS"] ?? "15");
const places = [
  ...(postgresUrl === undefined || isOnMysqlAlone
    ? []
    : [
        ["postgres", "read committed"],
        ["postgres", "repeatable read"],
        ["postgres", "serializable"],
      ]),
  ...(mysqlUrl === undefined ? [] : [["mariadb", "read committed"]]),
] as const;

afterEach(killAll);

describe("handlers.mjs", () => {
  test.each(places)(
    "on %s, %s: no key is paid by two requests, done and unpaid, or free and paid",
    async (engine, isolation) => {
      const args = [program, "--seconds", String(seconds), "--engines", engine, "--isolation", isolation];
      const env = { DATABASE_URL: postgresUrl ?? "", MYSQL_URL: mysqlUrl ?? "", COUNTERSIGN_STDERR: "off" };
      const soak = capture(process.execPath, args, { env });
      const code = await soak.ended;
      const report = soak.stdout();
      expect({ code, report, errors: soak.stderr() }).toEqual({
        code: 0,
        report: expect.any(String),
        errors: expect.any(String),
      });
      // One in which nothing happened proves nothing.
      const found = new RegExp(`^${engine}: (\\d+) keys \\(.*\\), (\\d+) kills`, "m").exec(report);
      const [keys = 0, kills = 0] = (found ?? []).slice(1).map(Number);
      expect(keys).toBeGreaterThanOrEqual(20);
      expect(kills).toBeGreaterThanOrEqual(1);
    },
    (seconds + 120) * 1_000,
  );
});
