// The command line where packages that only some users need are not installed.
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import type { Run } from "./cli-bench.ts";
import { installedWith } from "./installed-with.ts";
import { platformDatabase, spawnCli } from "./operator-bench.ts";

const folder = mkdtempSync(join(tmpdir(), "countersign-without-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("without @countersign/sandbox, countersign", () => {
  let cli: string;
  beforeAll(() => {
    cli = installedWith({ "@countersign/sandbox": undefined }, folder);
  });
  const spawned = (args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Run> =>
    spawnCli(args, { env, cwd: folder, cli });

  test.each<[string, readonly string[]]>([
    ["keygen", ["--out", "keys"]],
    ["payout", ["--url", "http://127.0.0.1:1/", "--key", "key.pem", "--keyid", "test"]],
    ["webhook", ["--url", "https://127.0.0.1:1/", "--username", "u", "--password", "p", "--secret", "s"]],
    ["sandbox", []],
    ["trigger", ["any.event", "--url", "http://127.0.0.1:1", "--api-key", "key"]],
  ])("%s says what to install", async (command, args) => {
    expect(await spawned([command, ...args])).toEqual({
      code: 2,
      out: "",
      err:
        `error: ${command} needs the package @countersign/sandbox, which plays the lending service; ` +
        "run npm install --save-dev @countersign/sandbox\n",
    });
    expect(existsSync(join(folder, "keys"))).toBe(false);
  });

  test("operates a store, and helps", async () => {
    const url = platformDatabase(join(folder, "platform.db"));
    expect(await spawned(["keys", "held"], { STORE_URL: url })).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^ {2}why +/m),
    });
    expect(await spawned(["migrate", "--print"])).toMatchObject({ code: 0, err: "" });
    expect(await spawned(["payout", "--help"])).toMatchObject({ code: 0, err: "" });
    const endpoint = ["endpoint", "create", "--base-url", "https://127.0.0.1:1", "--generate"];
    const generated = [...endpoint, "--platform-url", "https://platform.example", "--retries", "0"];
    expect(await spawned(generated, { COUNTERSIGN_API_KEY: "key" })).toMatchObject({ code: 3 });
  }, 20_000);
});

describe.each<[string, readonly string[], string]>([
  ["sqlite:platform.db", ["@countersign/store-sqlite", "libsql"], "@countersign/store-sqlite libsql"],
  ["postgres://u:s3cret@127.0.0.1:1/d", ["@countersign/store-postgres"], "@countersign/store-postgres pg"],
  ["redis://:s3cret@127.0.0.1:1", ["@countersign/store-redis"], "@countersign/store-redis redis"],
])("the store %s", (url, packages, install) => {
  test.each(packages)(
    "needs %s, and the command says so",
    async (missing) => {
      const cli = installedWith({ [missing]: undefined }, folder);
      const err = `error: --store-url: this engine needs the package ${missing}; run npm install ${install}\n`;
      const prune = await spawnCli(["prune"], { env: { STORE_URL: url }, cwd: folder, cli });
      expect(prune).toEqual({ code: 2, out: "", err });
      const migrate = await spawnCli(["migrate", "--print"], { env: { STORE_URL: url }, cwd: folder, cli });
      if (url.startsWith("redis"))
        expect(migrate).toMatchObject({ code: 2, err: expect.stringMatching(/no tables/) });
      else expect(migrate).toEqual({ code: 2, out: "", err });
      expect(await spawnCli(["--help"], { env: {}, cwd: folder, cli })).toMatchObject({ code: 0, err: "" });
    },
    20_000,
  );
});
