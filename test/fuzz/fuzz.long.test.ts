import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { capture } from "../../examples/platform/test/platform-process.ts";

const program = fileURLToPath(new URL("fuzz.mjs", import.meta.url));
const planted = (name: string): string => fileURLToPath(new URL(`planted/${name}.mjs`, import.meta.url));
// Where the number of runs decides, the time does not.
const noHurry = ["--seconds", "3600"];
let folder: string;

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "countersign-fuzz-"));
});

afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

// A process of its own: a test that measures coverage would share the counters.
async function fuzz(...args: string[]) {
  const run = capture(process.execPath, [program, "--failures", folder, ...args]);
  return { code: await run.ended, stdout: run.stdout(), stderr: run.stderr() };
}

function failures(): Buffer[] {
  return readdirSync(folder).map((file) => readFileSync(path.join(folder, file)));
}

describe("the fuzzer", () => {
  test("finds a fault behind four bytes that it has to guess one after the other", async () => {
    const found = await fuzz(planted("nested"), "--seed", "1", "--runs", "400000", ...noHurry);
    expect(found.code).toBe(1);
    expect(found.stdout).toBe("seed 1\n");
    expect(found.stderr).toContain("the planted fault");
    expect(found.stderr).toContain("base64: e/4Zog==");
    expect(failures()).toEqual([Buffer.from("7bfe19a2", "hex")]);
  });

  test("breaks a property again with the input that it kept", async () => {
    await fuzz(planted("nested"), "--seed", "1", "--runs", "400000", ...noHurry);
    const [file = ""] = readdirSync(folder);
    const again = await fuzz(planted("nested"), "--input", path.join(folder, file));
    expect(again.code).toBe(1);
    expect(again.stderr).toContain("the planted fault");
  });

  test("ends an input that never ends", async () => {
    const hung = await fuzz(planted("hanging"), "--seed", "1", ...noHurry);
    expect(hung.code).toBe(1);
    expect(hung.stderr).toContain("more than a second of the processor");
    expect(failures().map((input) => input.includes("z"))).toEqual([true]);
  });

  test("runs the same inputs again with the same seed", async () => {
    const args = ["signature-input", "json", "--runs", "3000", ...noHurry];
    const [one, same, other] = await Promise.all(
      ["7", "7", "8"].map((seed) => fuzz(...args, "--seed", seed)),
    );
    const digestsOf = (text = ""): string[] => text.match(/\([0-9a-f]{12}\)/g) ?? [];
    const untimed = (text = ""): string => text.replaceAll(/ in [\d.]+ s/g, "");
    expect(untimed(one?.stdout)).toMatch(/^seed 7\nsignature-input: \d+ runs \([0-9a-f]{12}\)/);
    expect(untimed(same?.stdout)).toBe(untimed(one?.stdout));
    expect(digestsOf(other?.stdout)).not.toEqual(digestsOf(one?.stdout));
  });
});
