import { readFileSync } from "node:fs";
import { Command, CommanderError } from "commander";
import { exitCodes, UsageError, type CommandIo, type ExitCode } from "./command-io.ts";
import { deliveriesCommand } from "./commands/deliveries.ts";
import { endpointCommand } from "./commands/endpoint.ts";
import { keygenCommand } from "./commands/keygen.ts";
import { keysCommand } from "./commands/keys.ts";
import { migrateCommand } from "./commands/migrate.ts";
import { payoutCommand } from "./commands/payout.ts";
import { pruneCommand } from "./commands/prune.ts";
import { sandboxCommand } from "./commands/sandbox.ts";
import { webhookCommand } from "./commands/webhook.ts";
import { StoreFailure } from "./operator/store-failure.ts";
import { messageOf } from "./thrown.ts";

const commands = [
  keygenCommand,
  payoutCommand,
  webhookCommand,
  sandboxCommand,
  endpointCommand,
  deliveriesCommand,
  migrateCommand,
  keysCommand,
  pruneCommand,
];

/** Runs the `countersign` command line and returns its exit code. Never throws. */
export async function runCli(args: readonly string[], io: CommandIo): Promise<ExitCode> {
  let exitCode: ExitCode = exitCodes.asExpected;
  const program = createProgram(io, (code) => {
    exitCode = code;
  });
  try {
    await program.parseAsync(args, { from: "user" });
    return exitCode;
  } catch (error) {
    return exitCodeOf(error, io);
  }
}

function createProgram(io: CommandIo, finish: (code: ExitCode) => void): Command {
  const program = new Command("countersign")
    .description(
      "plays the lending service towards a platform: signs and sends payout instructions and webhooks, serves its API; " +
        "and operates the stores of a platform: keys, prune, migrate",
    )
    .version(packageVersion())
    .addHelpText("after", "\nExample:\n  countersign keygen --keyid test && countersign payout --help\n");
  for (const create of commands) program.addCommand(create(io, finish));
  configure(program, io);
  return program;
}

function configure(command: Command, io: CommandIo): void {
  command
    .exitOverride()
    .showSuggestionAfterError(false)
    .configureOutput({ writeOut: io.writeOut, writeErr: io.writeError });
  for (const subcommand of command.commands) configure(subcommand, io);
}

function exitCodeOf(error: unknown, io: CommandIo): ExitCode {
  if (error instanceof CommanderError) {
    // Commander has written its own line; help and version that were asked for are no error.
    return error.exitCode === 0 ? exitCodes.asExpected : exitCodes.usage;
  }
  if (error instanceof UsageError) {
    io.writeError(`error: ${error.message}\n`);
    return exitCodes.usage;
  }
  if (error instanceof StoreFailure) {
    io.writeError(`error: ${error.message}\n`);
    return error.exitCode;
  }
  io.writeError(`countersign failed: ${error instanceof Error ? error.stack : messageOf(error)}
`);
  return exitCodes.internal;
}

function packageVersion(): string {
  const manifest: unknown = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
  const version =
    typeof manifest === "object" && manifest !== null && "version" in manifest ? manifest.version : undefined;
  return typeof version === "string" ? version : "unknown";
}
