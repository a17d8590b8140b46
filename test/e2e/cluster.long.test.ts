import path from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, jest, test } from "@jest/globals";
import { capture, killAll } from "../../examples/platform/test/platform-process.ts";
import { describeOnPostgres, describeOnRedis, postgresUrl } from "../support/servers/engines.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const script = path.join(root, "scripts/cluster.mjs");

// On a machine that has no time for it, every answer is late; what is asserted is none the less true.
jest.setTimeout(240_000);

afterEach(killAll);

const stores = [
  { store: "postgres", describe: describeOnPostgres },
  { store: "redis", describe: postgresUrl === undefined ? describe.skip : describeOnRedis },
] as const;

for (const { store, describe: describeOnStore } of stores) {
  describeOnStore(`npm run cluster, with ${store}`, () => {
    test("shows every case as expected over both processes and ends with 0", async () => {
      const cluster = capture(process.execPath, [script, "--once", "--store", store], { cwd: root });
      const code = await cluster.ended;
      expect({ code, err: cluster.stderr(), out: cluster.stdout() }).toMatchObject({
        code: 0,
        err: expect.not.stringMatching(/error/i),
      });
      const lines = cluster.stdout().trimEnd().split("\n");
      const rows = lines.slice(0, -2);
      expect(rows.length).toBeGreaterThanOrEqual(12);
      for (const row of rows) expect(row).toMatch(/^ok  .{34}  \S/);
      expect(lines.at(-1)).toBe(`${rows.length} of ${rows.length} as expected`);
    });
  });
}

test("npm run cluster refuses an argument that it does not know", async () => {
  const cluster = capture(process.execPath, [script, "--store", "mysql"], { cwd: root });
  expect(await cluster.ended).toBe(1);
  expect(cluster.stderr()).toContain("npm run cluster: expected no argument, --once, --store redis");
});
