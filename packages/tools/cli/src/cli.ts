#!/usr/bin/env node
import { userInfo } from "node:os";
import { Command } from "commander";
import { askAtTerminal, codeOf, exitCodes } from "./command-io.ts";
import { runCli } from "./program.ts";

async function main(): Promise<void> {
  for (const stream of [process.stdout, process.stderr]) stream.on("error", endWithoutReader);
  // Sets the exit code and lets the process end by itself, so that a pipe gets all of the output.
  process.exitCode = await runCli(process.argv.slice(2), {
    writeOut: (text) => process.stdout.write(text),
    writeError: (text) => process.stderr.write(text),
    ask: askAtTerminal(process.stdin, process.stderr),
    colours: new Command().configureOutput().getOutHasColors?.() === true,
    // A terminal of unknown size says 0.
    columns: process.stdout.columns > 0 ? process.stdout.columns : undefined,
    login: loginName,
    clock: () => Math.floor(Date.now() / 1000),
  });
}

function loginName(): string | undefined {
  try {
    return userInfo().username;
  } catch {
    // A container whose user has no line in /etc/passwd.
    return undefined;
  }
}

// The output's reader, such as head, may stop early; its disk may be full.
function endWithoutReader(error: Error): void {
  if (codeOf(error) !== "EPIPE")
    process.stderr.write(
      `error: the output cannot be written (${error.message}); look whether the command took effect\n`,
    );
  process.exit(exitCodes.otherwise);
}

void main();
