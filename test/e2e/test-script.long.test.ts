// npm test: what it builds, in a workspace of its own of which one package does not compile.
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";

const repository = fileURLToPath(new URL("../../", import.meta.url));
let folder: string;

function write(name: string, content: string | object): void {
  const file = path.join(folder, name);
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, typeof content === "string" ? content : JSON.stringify(content));
}

/** A package whose source is `source`, and whose test is `of` of what its tests name. */
function addPackage(name: string, source: string, testFile: string, ...references: readonly string[]): void {
  const compilerOptions = { composite: true, module: "nodenext", types: [] };
  write(`packages/made/${name}/package.json`, {
    name: `@made/${name}`,
    type: "module",
    exports: "./dist/index.js",
  });
  write(`packages/made/${name}/src/index.ts`, source);
  write(`packages/made/${name}/tsconfig.json`, {
    compilerOptions: {
      ...compilerOptions,
      rootDir: "src",
      outDir: "dist",
      tsBuildInfoFile: "dist/.tsbuildinfo",
    },
    include: ["src"],
    references: references.map((other) => ({ path: `../${other}` })),
  });
  write(`packages/made/${name}/test/${name}.test.mjs`, testFile);
  write(`node_modules/@made/.keep`, "");
  symlinkSync(
    path.join(folder, "packages/made", name),
    path.join(folder, "node_modules/@made", name),
    "junction",
  );
}

beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), "test-script-"));
  write("package-lock.json", {});
  write("node_modules/.package-lock.json", {});
  write("package.json", { type: "module" });
  write("jest.config.mjs", 'export default { testMatch: ["<rootDir>/**/*.test.mjs"], transform: {} };');
  write("tsconfig.json", {
    files: [],
    references: ["sound", "used", "broken"].map((name) => ({ path: `packages/made/${name}` })),
  });
  for (const name of ["typescript", "jest"])
    symlinkSync(
      path.join(repository, "node_modules", name),
      path.join(folder, "node_modules", name),
      "junction",
    );
  cpSync(path.join(repository, "scripts"), path.join(folder, "scripts"), { recursive: true });
  const head = `test("is built", async () => expect((await import("@made/`;
  const tail = `")).value).toBe(1));`;
  addPackage("used", "export const value: number = 1;", `${head}used${tail}`);
  // Of its tests alone: no project refers to it.
  addPackage("sound", "export const value: number = 1;", `${head}used${tail}`);
  addPackage("broken", 'export const value: number = "no number";', `${head}broken${tail}`);
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

function npmTest(...args: readonly string[]): { status: number | null; output: string } {
  const program = [path.join(folder, "scripts/test.mjs"), ...args];
  const env = { ...process.env, NODE_OPTIONS: "", NODE_ENV: "test" };
  const { status, stdout, stderr } = spawnSync(process.execPath, program, {
    cwd: folder,
    env,
    encoding: "utf8",
  });
  return { status, output: stdout + stderr };
}

describe("npm test", () => {
  test("runs one package's tests while another one does not compile, with what they import built", () => {
    const { status, output } = npmTest("packages/made/sound");
    expect(output).toContain("tsc -b packages/made/used packages/made/sound");
    expect(output).toContain("Tests:       1 passed, 1 total");
    expect(status).toBe(0);
  });

  test.each([[["packages/made/broken"]], [["-t", "packages/made/sound"]]])(
    "ends with the compiler's error when the arguments are %j",
    (args) => {
      const { status, output } = npmTest(...args);
      expect(output).toContain("the build failed");
      expect(output).not.toContain("Tests:");
      expect(status).toBe(1);
    },
  );
});
