// The code that pages show, compiled as a reader compiles it: by the tsconfig.json that the documentation shows, to the letter.
import { execFile } from "node:child_process";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { pageFiles } from "../../site/scripts/source.mjs";

const run = promisify(execFile);
const root = resolve(dirname(fileURLToPath(import.meta.url)), "../..");
const read = (file: string): string => readFileSync(join(root, file), "utf8");

// Decorators need an option that NestJS writes into the tsconfig.json of its projects.
const withOptionsOfTheirOwn = new Set(["nestjs"]);

/** The examples of which pages show a file in TypeScript. */
const shown = [
  ...new Set(
    pageFiles().flatMap((page) =>
      [...read(page).matchAll(/^ *```ts file=examples\/([\w-]+)\/src\//gm)].map(([, name = ""]) => name),
    ),
  ),
].filter((name) => !withOptionsOfTheirOwn.has(name));

const folder = mkdtempSync(join(tmpdir(), "countersign-shown-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

beforeAll(() => {
  const [, tsconfig = ""] = /^```json\n([^]*?)^```$/m.exec(read("docs/using.md")) ?? [];
  for (const name of shown) {
    const project = join(folder, name);
    const example = join(root, "examples", name);
    cpSync(join(example, "src"), join(project, "src"), { recursive: true });
    // Nearer to the code than those of the whole workspace.
    if (readdirSync(example).includes("node_modules"))
      symlinkSync(join(example, "node_modules"), join(project, "src/node_modules"));
    symlinkSync(join(root, "node_modules"), join(project, "node_modules"));
    writeFileSync(join(project, "tsconfig.json"), tsconfig);
    writeFileSync(join(project, "package.json"), JSON.stringify({ type: "module" }));
  }
});

test("pages show code of several examples", () => {
  expect(shown).toEqual(expect.arrayContaining(["snippets", "minimal", "fastify", "hono"]));
});

test.each(shown)("the shown code of examples/%s compiles under the shown tsconfig.json", async (name) => {
  const tsc = join(root, "node_modules/typescript/bin/tsc");
  const told = await run(process.execPath, [tsc, "-p", join(folder, name), "--pretty", "false"]).then(
    () => "",
    ({ stdout }: { stdout: string }) => stdout,
  );
  expect(told).toBe("");
});
