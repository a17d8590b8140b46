// Paths on which reading or creating never ends, in a process that can be ended.
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { generateKeyPair, writeKeyFiles } from "@countersign/sandbox";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";

const cli = fileURLToPath(new URL("../dist/cli.js", import.meta.url));
// Elsewhere these paths mean nothing.
const describeOnLinux = process.platform === "linux" ? describe : describe.skip;

describeOnLinux("countersign with a path of the system", () => {
  let directory: string;
  let key: string;
  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), "countersign-paths-"));
    key = writeKeyFiles(generateKeyPair(), { directory }).privateKeyFile;
  });
  afterAll(() => rmSync(directory, { recursive: true }));

  const payout = (...more: readonly string[]): readonly string[] => [
    "payout",
    "--url",
    "http://127.0.0.1:1/",
    "--keyid",
    "test",
    ...more,
  ];
  test.each<[string, () => readonly string[], RegExp]>([
    [
      "keys in a new directory in /proc",
      () => ["keygen", "--out", "/proc/countersign/keys"],
      /cannot write the key files: ENOENT: /,
    ],
    ["a device as key", () => payout("--key", "/dev/zero"), /--key \/dev\/zero: is no file$/m],
    [
      "a device as body",
      () => payout("--key", key, "--file", "/dev/zero"),
      /--file \/dev\/zero: is no file$/m,
    ],
  ])("ends with 2 and one line about %s", (_name, args, line) => {
    const { status, stderr } = spawnSync(process.execPath, [cli, ...args()], {
      encoding: "utf8",
      timeout: 15_000,
      killSignal: "SIGKILL",
      // Node warns when both are set.
      env: { ...process.env, FORCE_COLOR: undefined, NO_COLOR: undefined },
    });
    expect({ status, stderr }).toEqual({ status: 2, stderr: expect.stringMatching(/^error: [^\n]*\n$/) });
    expect(stderr).toMatch(line);
  });
});
