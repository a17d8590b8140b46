import { mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { afterEach, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";

interface Setup {
  nodeProblem(version: string): string | undefined;
  isInstallCurrent(folder: string): boolean;
  buildFingerprint(folder: string): string;
}

let setup: Setup;
let folder: string;

beforeAll(async () => {
  const script = fileURLToPath(new URL("../../scripts/setup.mjs", import.meta.url));
  setup = (await import(pathToFileURL(script).href)) as Setup;
});

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "setup-"));
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

function write(name: string, content = "", secondsAgo = 0): void {
  const location = path.join(folder, name);
  mkdirSync(path.dirname(location), { recursive: true });
  writeFileSync(location, content);
  const time = Date.now() / 1000 - secondsAgo;
  utimesSync(location, time, time);
}

describe("nodeProblem", () => {
  test.each([
    ["20.19.0", undefined],
    ["20.20.2", undefined],
    ["26.0.0", undefined],
    ["20.18.3", "Node 20.19 or later is needed, this is 20.18.3"],
    ["18.20.0", "Node 20.19 or later is needed, this is 18.20.0"],
  ])("of %s is %s", (version, problem) => {
    expect(setup.nodeProblem(version)).toBe(problem);
  });
});

describe("isInstallCurrent", () => {
  test("is false without node_modules", () => {
    write("package-lock.json", "{}");
    expect(setup.isInstallCurrent(folder)).toBe(false);
  });

  test("is true when the installation is newer than the lock file", () => {
    write("package-lock.json", "{}", 60);
    write("node_modules/.package-lock.json");
    expect(setup.isInstallCurrent(folder)).toBe(true);
  });

  test("is false when the lock file is newer", () => {
    write("node_modules/.package-lock.json", "", 60);
    write("package-lock.json", "{}");
    expect(setup.isInstallCurrent(folder)).toBe(false);
  });

  test("stays true when the lock file is only touched, and becomes false when it changes", () => {
    write("package-lock.json", "{}", 60);
    write("node_modules/.package-lock.json", "", 30);
    expect(setup.isInstallCurrent(folder)).toBe(true);
    write("package-lock.json", "{}");
    expect(setup.isInstallCurrent(folder)).toBe(true);
    write("package-lock.json", "{ }");
    expect(setup.isInstallCurrent(folder)).toBe(false);
  });
});

describe("buildFingerprint", () => {
  beforeEach(() => {
    write("tsconfig.json", "{}", 60);
    write("packages/made/a/package.json", "{}", 60);
    write("packages/made/a/src/index.ts", "1", 60);
    write("packages/made/a/src/deep/other.ts", "1", 60);
    write("packages/made/a/test/a.test.ts", "1", 60);
    write("packages/made/a/dist/.tsbuildinfo", "1", 60);
    write("packages/made/a/dist/index.js", "1", 60);
  });

  test.each<[string, () => void]>([
    ["a source changes", () => write("packages/made/a/src/deep/other.ts", "2")],
    ["a source is added", () => write("packages/made/a/src/new.ts")],
    ["a source is removed", () => rmSync(path.join(folder, "packages/made/a/src/deep/other.ts"))],
    ["a test changes", () => write("packages/made/a/test/a.test.ts", "2")],
    ["a configuration changes", () => write("tsconfig.json", "{ }")],
    ["the output is cleaned", () => rmSync(path.join(folder, "packages/made/a/dist"), { recursive: true })],
  ])("changes when %s", (_name, change) => {
    const before = setup.buildFingerprint(folder);
    change();
    expect(setup.buildFingerprint(folder)).not.toBe(before);
  });

  test("stays when nothing changes", () => {
    const before = setup.buildFingerprint(folder);
    write("packages/made/a/node_modules/x.js");
    expect(setup.buildFingerprint(folder)).toBe(before);
  });
});
