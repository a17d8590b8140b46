import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, test } from "@jest/globals";
import { capture, killAll } from "../../examples/platform/test/platform-process.ts";
import { eventually } from "../support/runs/eventually.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** The results in a recording of the demo (asciinema, version 2). */
function recordedRows(cast: string): readonly string[] {
  const [, ...events] = cast.trimEnd().split("\n");
  const output = events.map((line) => (JSON.parse(line) as [number, string, string])[2]).join("");
  return output.split("\r\n").filter((line) => /^(?:ok|NO) /.test(line));
}

afterEach(killAll);

describe("npm start", () => {
  test("-- --once shows every case as expected and ends with 0", async () => {
    // PORT is of no interest to --once: it must not collide with a platform that serves.
    const demo = capture("npm", ["start", "--silent", "--", "--once"], { cwd: root, env: { PORT: "1" } });
    expect(await demo.ended).toBe(0);
    const lines = demo.stdout().trimEnd().split("\n");
    // An empty line stands above each heading and the last line.
    const rows = lines.filter((line, index) => line !== "" && lines[index - 1] !== "");
    expect(rows.length).toBeGreaterThanOrEqual(12);
    for (const row of rows) expect(row).toMatch(/^ok  .{34}  \S/);
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(60);
    expect(lines.at(-1)).toBe(`${rows.length} of ${rows.length} as expected`);
    // The README's picture and the site show the recording.
    expect(rows).toEqual(recordedRows(readFileSync(join(root, "site/recordings/demo.cast"), "utf8")));
  });

  test("refuses an argument that it does not know", async () => {
    const demo = capture("npm", ["start", "--silent", "--", "--twice"], { cwd: root });
    expect(await demo.ended).toBe(1);
    expect(demo.stderr()).toContain('npm start: expected no argument, --once or --help,\ngot "--twice"');
  });
});

test("npm run countersign -- sandbox ends with npm", async () => {
  const npm = capture("npm", ["run", "--silent", "countersign", "--", "sandbox", "--port", "0"], {
    cwd: root,
    env: { COUNTERSIGN_API_KEY: "test-api-key" },
  });
  const urlOf = (): string | undefined => /http:\/\/127\.0\.0\.1:\d+/.exec(npm.stdout())?.[0];
  await eventually(() => urlOf() !== undefined);
  const answers = async (): Promise<boolean> =>
    fetch(`${urlOf()}/sandbox/deliveries`).then(
      ({ status }) => status === 401,
      () => false,
    );
  expect(await answers()).toBe(true);
  // npm alone, as a service manager does that knows only what it started.
  npm.child.kill("SIGTERM");
  await eventually(async () => !(await answers()));
});
