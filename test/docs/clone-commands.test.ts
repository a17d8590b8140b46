// What a stranger types in a clone: commands of READMEs and pages run there, and begin as a shell needs them.
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, test } from "@jest/globals";
import { workspacePackages } from "../../scripts/workspace.mjs";
import { documents, pageFiles } from "../../site/scripts/source.mjs";

const root = resolve(dirname(fileURLToPath(import.meta.url)), "../..");
const work = mkdtempSync(join(tmpdir(), "countersign-clone-"));
afterAll(() => rmSync(work, { recursive: true, force: true }));

describe("npx countersign in a clone", () => {
  test.each([".", "examples/minimal", "packages/endpoints/countersign"])("is the command in %s", (folder) => {
    const typed = "npx --no countersign keygen --help";
    const { status, stdout, stderr } = spawnSync("bash", ["-c", typed], {
      cwd: join(root, folder),
      encoding: "utf8",
    });
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    expect(stdout).toMatch(/^Usage: countersign keygen /);
  });

  test("says that it has to be built first", () => {
    const { folder, manifest } = workspacePackages.get("cli") ?? {};
    const program = String((manifest as { bin?: Record<string, string> }).bin?.["countersign"]);
    const unbuilt = join(work, "bin", "countersign.js");
    mkdirSync(dirname(unbuilt));
    cpSync(join(root, String(folder), program), unbuilt);
    cpSync(join(root, String(folder), "package.json"), join(work, "package.json"));
    const { status, stderr } = spawnSync(process.execPath, [unbuilt], { encoding: "utf8" });
    expect({ status, stderr }).toEqual({
      status: 2,
      stderr: "error: the command is not built yet; run npm run build in the root of the clone\n",
    });
  });
});

const readmes = [...workspacePackages.values()].map(({ folder }) => `${folder}/README.md`);
const shown = [...new Set(["README.md", ...readmes, ...pageFiles(), ...Object.keys(documents)])];
// Output of a command, such as its help, is not typed.
const typedBlocks = /^ *```(?:sh|text)(?! run=)[^\n]*\n([^]*?)^ *```$/gm;
const program = /^\s*(?:[A-Z_]+=\S+ )*(?:\\\n\s*)?countersign [a-z]|\| countersign |&& countersign /m;

test.each(shown)("%s starts the command with npx or npm, which no shell finds by its name alone", (file) => {
  const blocks = [...readFileSync(join(root, file), "utf8").matchAll(typedBlocks)].map(
    ([, block = ""]) => block,
  );
  expect(blocks.filter((block) => program.test(block))).toEqual([]);
});
