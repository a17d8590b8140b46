import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeEach, afterEach, describe, expect, test } from "@jest/globals";
import { run } from "./cli-bench.ts";
import { spawnCli } from "./operator-bench.ts";

const work = mkdtempSync(join(tmpdir(), "countersign-init-"));
const called = join(work, "called.json");
const { version } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8")) as {
  readonly version: string;
};
const before = process.env["npm_execpath"];

/** An npm that writes down how it was called, and ends so. */
function npm(status: number): string {
  const folder = mkdtempSync(join(work, "npm-"));
  const file = join(folder, "npm-cli.js");
  const write = `require("node:fs").writeFileSync(${JSON.stringify(called)}, JSON.stringify(process.argv.slice(2)))`;
  writeFileSync(file, `${write}; process.exitCode = ${status};`);
  chmodSync(file, 0o755);
  return file;
}

/** What it was called with; undefined when it was not. */
function calledWith(): unknown {
  try {
    return JSON.parse(readFileSync(called, "utf8"));
  } catch {
    return undefined;
  }
}

beforeEach(() => {
  rmSync(called, { force: true });
  process.env["npm_execpath"] = npm(0);
});
afterEach(() => {
  if (before === undefined) delete process.env["npm_execpath"];
  else process.env["npm_execpath"] = before;
});
afterAll(() => rmSync(work, { recursive: true }));

const created = ["create", "--yes", `countersign@${version}`];

describe("countersign init", () => {
  test.each([
    ["y", 0, true],
    ["YES", 0, true],
    ["n", 1, false],
    ["", 1, false],
    [undefined, 1, false],
  ])("shows the command, asks, and on %j ends with %d", async (answer, code, isRun) => {
    const questions: string[] = [];
    const ask = (question: string): Promise<string | undefined> => {
      questions.push(question);
      return Promise.resolve(answer);
    };
    const ended = await run(["init", "my platform", "--store", "postgres"], { ask });
    expect(ended).toEqual({
      code,
      out: `npm create countersign@${version} -- 'my platform' --store postgres\n`,
      err: "",
    });
    expect(questions).toEqual(["Fetch it, and run it? [y/N] "]);
    expect(calledWith()).toEqual(
      isRun ? [...created, "--", "my platform", "--store", "postgres"] : undefined,
    );
  });

  test.each([["--yes"], ["-y"]])("asks nothing with %s", async (flag) => {
    const out = `npm create countersign@${version} -- folder ${flag}\n`;
    expect(await run(["init", "folder", flag])).toEqual({ code: 0, out, err: "" });
    expect(calledWith()).toEqual([...created, "--", "folder", flag]);
  });

  test("runs nothing where nobody sits at a terminal", async () => {
    expect(await spawnCli(["init"], { env: { npm_execpath: npm(0) }, cwd: work })).toEqual({
      code: 1,
      out: `npm create countersign@${version}\n`,
      err: "nobody to ask at a terminal: nothing was run; type this command, or add --yes\n",
    });
    expect(calledWith()).toBeUndefined();
  });

  test.each([
    [1, 1],
    [2, 2],
    [127, 1],
  ])("where npm ends with %d it ends with %d", async (status, code) => {
    process.env["npm_execpath"] = npm(status);
    expect(await run(["init", "--yes"])).toMatchObject({ code });
    expect(calledWith()).toEqual([...created, "--", "--yes"]);
  });

  test("hands on what it does not know, for create-countersign to judge", async () => {
    await run(["init", "--yes", "--stores", "x", "it's"]);
    expect(calledWith()).toEqual([...created, "--", "--yes", "--stores", "x", "it's"]);
  });

  test("takes no program from npm_execpath but npm's", async () => {
    const folder = join(work, "other");
    mkdirSync(folder);
    const other = join(folder, "yarn.js");
    writeFileSync(other, `require("node:fs").writeFileSync(${JSON.stringify(called)}, "[]")`);
    const registry = { npm_config_registry: "http://127.0.0.1:1/", npm_config_fetch_retries: "0" };
    const env = { ...registry, npm_execpath: other, npm_config_cache: join(work, "cache") };
    expect(await spawnCli(["init", "--yes"], { env, cwd: work })).toMatchObject({ code: 1 });
    expect(calledWith()).toBeUndefined();
  }, 30_000);

  test("--json prints the command, and runs nothing", async () => {
    const { code, out } = await run(["init", "folder", "--store", "redis", "--json", "--yes"]);
    expect(code).toBe(0);
    expect(JSON.parse(out)).toEqual({
      command: ["npm", "create", `countersign@${version}`, "--", "folder", "--store", "redis", "--yes"],
    });
    expect(calledWith()).toBeUndefined();
  });

  test("shows no character that steers the terminal", async () => {
    const { out } = await run(["init", "a\u001B[2Jb"], { ask: () => Promise.resolve("n") });
    expect(out).toContain(String.raw`'a\u{1b}[2Jb'`);
    expect(out).not.toContain("\u001B");
  });
});
