#!/usr/bin/env node
import { wantsColours } from "./command-io.ts";
import { runCli } from "./program.ts";

async function main(): Promise<void> {
  // The exit code is set and the process ends by itself, so that a pipe gets all of the output.
  process.exitCode = await runCli(process.argv.slice(2), {
    writeOut: (text) => process.stdout.write(text),
    writeError: (text) => process.stderr.write(text),
    colours: wantsColours(process.stdout.isTTY, process.env),
    clock: () => Math.floor(Date.now() / 1000),
  });
}

void main();
