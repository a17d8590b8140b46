import { readdirSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "@jest/globals";
import { capture } from "../../examples/platform/test/platform-process.ts";

test("no input of the corpus breaks a property", async () => {
  const program = fileURLToPath(new URL("fuzz.mjs", import.meta.url));
  const targets = readdirSync(fileURLToPath(new URL("targets", import.meta.url)));
  // A process of its own: a test that measures coverage would share the counters.
  const run = capture(process.execPath, [program, "--runs", "0", "--seconds", "3600"]);
  expect(await run.ended).toBe(0);
  expect(run.stderr()).toBe("");
  // Where no function of the packages is seen, coverage guides nothing.
  expect(run.stdout().match(/^[\w-]+: [1-9]\d* runs.* [1-9]\d* functions entered/gm)).toHaveLength(
    targets.length,
  );
});

// A corpus file without its target would never be read.
test("each file of the corpus belongs to a target", () => {
  const names = (name: string): string[] =>
    readdirSync(fileURLToPath(new URL(name, import.meta.url))).map((file) => path.parse(file).name);
  expect(names("targets")).toEqual(expect.arrayContaining(names("corpus")));
});
