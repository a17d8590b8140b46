import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { capture, killAll, signalGroup } from "../../examples/platform/test/platform-process.ts";

const program = fileURLToPath(new URL("soak.mjs", import.meta.url));
const none = { DATABASE_URL: "", REDIS_URL: "", CI: "" };
let folder: string;

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "countersign-soak-command-"));
});

afterEach(async () => {
  await killAll();
  rmSync(folder, { recursive: true, force: true });
});

function soak(args: readonly string[], env: Record<string, string> = {}) {
  return capture(process.execPath, [program, ...args], { env: { ...none, TMPDIR: folder, ...env } });
}

describe("the command line of soak.mjs", () => {
  test.each<[string, string[], Record<string, string>, RegExp]>([
    ["an engine that is a member of every object", ["--engines", "toString"], {}, /--engines: toString/],
    ["seconds that are no number", ["--seconds", "abc"], {}, /--seconds: expected a whole number/],
    ["empty seconds", ["--seconds", ""], {}, /--seconds: expected a whole number/],
    ["an unknown flag", ["--second", "3"], {}, /Unknown option '--second'/],
    ["no engine that has a server", ["--engines", "redis,postgres"], {}, /no engine was run/],
    ["a missing server with CI", ["--engines", "sqlite,redis"], { CI: "true" }, /a server is missing/],
    [
      "a URL that cannot be read, without its password",
      ["--engines", "postgres"],
      { DATABASE_URL: "postgres://payer:hidden-secret@127.0.0.1:99999/x" },
      /DATABASE_URL is set, but is no URL/,
    ],
  ])("refuses %s in one line", async (_name, args, env, message) => {
    const run = soak(args, env);
    expect(await run.ended).toBe(1);
    expect(run.stderr()).toMatch(message);
    expect(run.stderr().trim().split("\n")).toHaveLength(1);
    expect(run.stdout() + run.stderr()).not.toContain("hidden-secret");
    expect(readdirSync(folder)).toEqual([]);
  });

  test.each([
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ] as const)("leaves no folder behind after %s", async (signal, code) => {
    const run = soak(["--engines", "sqlite", "--seconds", "60"]);
    while (!readdirSync(folder).some((name) => name.startsWith("soak-"))) await sleep(20);
    await sleep(1_500);
    // As a terminal does it: to the payers, too.
    signalGroup(run, signal);
    expect(await run.ended).toBe(code);
    expect(readdirSync(folder)).toEqual([]);
  });
});
