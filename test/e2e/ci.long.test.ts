import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";

const root = fileURLToPath(new URL("../..", import.meta.url));
let folder: string;

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "ci-"));
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

const report = {
  numTotalTests: 3,
  numPassedTests: 3,
  numFailedTests: 0,
  numRuntimeErrorTestSuites: 0,
  numPendingTests: 0,
  numTodoTests: 0,
};

/** What the sum says of the reports, and how it ends. */
function sum(...reports: readonly Partial<typeof report>[]) {
  const files = reports.map((changed, index) => {
    const file = path.join(folder, `jest-${index}.json`);
    writeFileSync(file, JSON.stringify({ ...report, ...changed }));
    return file;
  });
  const { status, stdout } = spawnSync(process.execPath, [path.join(root, ".ci/sum.mjs"), ...files], {
    encoding: "utf8",
  });
  return { status, last: stdout.trimEnd().split("\n").at(-1) };
}

describe("the sum of all runs", () => {
  test.each<[string, readonly Partial<typeof report>[], number, string]>([
    ["adds up", [{}, { numPassedTests: 4 }], 0, "7 passed, 0 failed"],
    ["has the failures of any run", [{ numFailedTests: 2 }, {}], 1, "6 passed, 2 failed"],
    ["counts a file that did not run as failed", [{ numRuntimeErrorTestSuites: 1 }], 1, "3 passed, 1 failed"],
    ["counts a skipped test as failed", [{ numPendingTests: 1 }, {}], 1, "6 passed, 1 failed"],
    [
      "counts a run without tests as failed",
      [{}, { numTotalTests: 0, numPassedTests: 0 }],
      1,
      "3 passed, 1 failed",
    ],
    ["of nothing is a failure", [], 1, "0 passed, 0 failed"],
  ])("%s", (_name, reports, status, last) => {
    expect(sum(...reports)).toMatchObject({ status, last });
  });
});

function testFiles(place: string): string[] {
  return readdirSync(place, { withFileTypes: true }).flatMap((entry) => {
    const found = path.join(place, entry.name);
    // Templates are the tests of those who get them.
    const others = ["node_modules", "dist", "templates"];
    if (entry.isDirectory()) return others.includes(entry.name) ? [] : testFiles(found);
    return entry.name.endsWith(".test.ts") ? [found] : [];
  });
}

describe("npm test and npm run test:long", () => {
  const listed = (...args: readonly string[]): string[] => {
    const jest = path.join(root, "node_modules/jest/bin/jest.js");
    const { stdout } = spawnSync(process.execPath, [jest, "--listTests", ...args], {
      cwd: root,
      encoding: "utf8",
    });
    return stdout.split("\n").filter((line) => line !== "");
  };

  test("run every test file between them, and none both but properties and tables, which have more cases in one", () => {
    const usual = listed();
    const long = listed("--config", "jest.long.config.mjs");
    const both = usual.filter((file) => long.includes(file));
    expect(long.every((file) => /\.(?:long|fuzz|table)\.test\.ts$/.test(file))).toBe(true);
    expect(both.every((file) => /\.(?:fuzz|table)\.test\.ts$/.test(file))).toBe(true);
    const all = ["packages", "examples", "test"].flatMap((place) => testFiles(path.join(root, place)));
    expect([...usual, ...long]).toHaveLength(all.length + both.length);
    expect(both.length).toBeGreaterThan(0);
    expect(new Set([...usual, ...long])).toEqual(new Set(all));
    expect(long.length).toBeGreaterThan(0);
  });
});
