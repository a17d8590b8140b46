import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, test } from "@jest/globals";
import { capture, killAll } from "../../examples/platform/test/platform-process.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));

afterEach(killAll);

describe("npm start", () => {
  test("-- --once shows every case as expected and ends with 0", async () => {
    // PORT is of no interest to --once: it must not collide with a platform that serves.
    const demo = capture("npm", ["start", "--silent", "--", "--once"], { cwd: root, env: { PORT: "1" } });
    expect(await demo.ended).toBe(0);
    const lines = demo.stdout().trimEnd().split("\n");
    const rows = lines.slice(0, -2);
    expect(rows.length).toBeGreaterThanOrEqual(12);
    for (const row of rows) expect(row).toMatch(/^ok  .{34}  \S/);
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(60);
    expect(lines.at(-1)).toBe(`${rows.length} of ${rows.length} as expected`);
  }, 60_000);

  test("refuses an argument that it does not know", async () => {
    const demo = capture("npm", ["start", "--silent", "--", "--twice"], { cwd: root });
    expect(await demo.ended).toBe(1);
    expect(demo.stderr()).toContain('npm start: expected no argument or --once, got "--twice"');
  }, 30_000);
});
