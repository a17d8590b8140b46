import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { beforeEach, describe, expect, test } from "@jest/globals";
import { testFolder } from "@countersign/test-support/runs/after-test.ts";

const home = fileURLToPath(new URL("..", import.meta.url));
const program = path.join(home, "dist", "cli.js");

let work: string;

beforeEach(() => {
  work = testFolder();
});

/** An npm that writes down how it is called. */
function npm(name: string, status: number): string {
  const file = path.join(work, name, "npm-cli.js");
  execFileSync("mkdir", ["-p", path.dirname(file)]);
  const called = `[process.cwd(), ...process.argv.slice(2)].join("\\n")`;
  writeFileSync(
    file,
    `require("node:fs").writeFileSync(__dirname + "/called", ${called}); process.exitCode = ${status};`,
  );
  return file;
}

function create(args: readonly string[], npmExecpath = npm("none", 1)) {
  const env = { ...process.env, npm_execpath: npmExecpath };
  const { status, stdout, stderr } = spawnSync(process.execPath, [program, ...args], {
    cwd: work,
    encoding: "utf8",
    env,
  });
  return { status, stdout, stderr };
}

describe("create-countersign as a process ", () => {
  test("writes the defaults, says which, installs nothing, and ends with 0", () => {
    const { status, stdout, stderr } = create(["plain"]);
    expect(status).toBe(0);
    expect(stderr).toBe("");
    expect(stdout).toMatch(/Wrote plain to .*\n\(Express, SQLite, TypeScript\)/);
    expect(readdirSync(path.join(work, "plain"))).toContain("tsconfig.json");
    expect(existsSync(path.join(work, "none", "called"))).toBe(false);
  });

  test.each([
    ["and ends with 0", "good", 0, 0],
    ["and ends with 1 when that fails", "bad", 3, 1],
  ])("with --install runs the npm that runs it %s", (_name, name, npmStatus, expected) => {
    const { status } = create([`with-${name}`, "--install"], npm(name, npmStatus));
    expect(status).toBe(expected);
    const called = readFileSync(path.join(work, name, "called"), "utf8").split("\n");
    expect(called).toEqual([path.join(work, `with-${name}`), "install"]);
  });

  test("ends with 2 for a flag that it does not know, with 1 for a folder that is not empty", () => {
    expect(create(["--stores", "sqlite"])).toMatchObject({ status: 2, stdout: "" });
    expect(create(["."])).toMatchObject({ status: 1, stdout: "" });
  });

  test("prints help and version of its package", () => {
    const { version } = JSON.parse(readFileSync(path.join(home, "package.json"), "utf8")) as {
      version: string;
    };
    expect(create(["--version"])).toEqual({ status: 0, stdout: `${version}\n`, stderr: "" });
    expect(create(["--help"]).stdout).toContain("npm create countersign@latest");
  });
});
