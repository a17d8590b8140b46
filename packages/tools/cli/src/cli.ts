#!/usr/bin/env node
import { userInfo } from "node:os";
import { askAtTerminal } from "./ask-terminal.ts";
import { exitCodes, wantsColours } from "./command-io.ts";
import { runCli } from "./program.ts";
import { codeOf } from "./thrown.ts";

async function main(): Promise<void> {
  process.stdout.on("error", endWithoutReader);
  // The exit code is set and the process ends by itself, so that a pipe gets all of the output.
  process.exitCode = await runCli(process.argv.slice(2), {
    writeOut: (text) => process.stdout.write(text),
    writeError: (text) => process.stderr.write(text),
    ask: askAtTerminal(process.stdin, process.stderr),
    colours: wantsColours(process.stdout.isTTY, process.env),
    columns: process.stdout.isTTY ? process.stdout.columns : undefined,
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

// Whoever reads the output, such as head, may have enough of it.
function endWithoutReader(error: Error): void {
  if (codeOf(error) !== "EPIPE") throw error;
  process.exit(exitCodes.otherwise);
}

void main();
