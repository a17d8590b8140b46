import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { fileURLToPath, pathToFileURL } from "node:url";
import { expect, test } from "@jest/globals";

const at = (file: string): string => fileURLToPath(new URL(`../../${file}`, import.meta.url));

/** A script of the workspace that goes on after its reader is gone, and ends with a code of its own. */
const script = `
  import { runScript } from ${JSON.stringify(pathToFileURL(at("scripts/setup.mjs")).href)};
  runScript(async () => {
    for (let line = 0; line < 3; line += 1) {
      console.log(line);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    process.exitCode = 7;
  });`;

test.each<[string, readonly string[], number]>([
  ["a script of the workspace, with its own code", ["--input-type=module", "--eval", script], 7],
  ["countersign, which did not do all", [at("packages/tools/cli/dist/cli.js"), "--help"], 1],
  [
    "create-countersign, which has written",
    [at("packages/tools/create-countersign/dist/cli.js"), "--help"],
    0,
  ],
])("a reader that stops early ends %s, without a trace", async (_name, args, expected) => {
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "pipe"] });
  child.stdout.destroy();
  const [trace, [code]] = await Promise.all([text(child.stderr), once(child, "exit")]);
  expect({ trace, code }).toEqual({ trace: "", code: expected });
});
