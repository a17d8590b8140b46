import { readFileSync } from "node:fs";
import { Command, CommanderError } from "commander";
import type { CommandIo, ExitCode, Finish } from "./command-io.ts";
import { CommandError, exitCodes, memberOf, messageOf } from "./command-io.ts";
import { codeCommand } from "./commands/code.ts";
import { doctorCommand } from "./commands/doctor.ts";
import { endpointCommand } from "./commands/endpoint.ts";
import { explainCommand } from "./commands/explain.ts";
import { keygenCommand } from "./commands/keygen.ts";
import { keysCommand } from "./commands/keys.ts";
import { migrateCommand } from "./commands/migrate.ts";
import { payoutCommand } from "./commands/payout.ts";
import { pruneCommand } from "./commands/prune.ts";
import { sandboxCommand } from "./commands/sandbox.ts";
import { triggerCommand } from "./commands/trigger.ts";
import { webhookCommand } from "./commands/webhook.ts";
import { inboxCommand, outcomesCommand, workCommand } from "./commands/work.ts";
import { printable } from "./output.ts";

const groups = new Map([
  [
    "Operate a platform:",
    [
      doctorCommand,
      explainCommand,
      codeCommand,
      keysCommand,
      inboxCommand,
      outcomesCommand,
      workCommand,
      pruneCommand,
      migrateCommand,
    ],
  ],
  [
    "Play the lending service (with @countersign/devtools):",
    [keygenCommand, payoutCommand, webhookCommand, sandboxCommand, endpointCommand, triggerCommand],
  ],
]);

const notes = `
Examples:
  countersign doctor --app ./app.js
  STORE_URL=postgres://… countersign keys held
  countersign keygen --keyid test && countersign payout --help

Exit codes of every command:
  0   as expected
  1   otherwise: refused, not found, something to do
  2   the command line, or a file that it names, cannot be used
  3   no answer
  70  a fault of the command itself
`;

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

export function createProgram(io: CommandIo, finish: Finish): Command {
  const manifest: unknown = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
  const program = new Command("countersign")
    .description(
      "operates the stores of a platform, looks for faults in its set-up and in requests, and plays the lending service towards it",
    )
    .version(String(memberOf(manifest, "version")))
    .addHelpText("after", notes);
  for (const [heading, commands] of groups) {
    for (const create of commands) program.addCommand(create(io, finish).helpGroup(heading));
  }
  program.addHelpCommand(
    new Command("help").argument("[command]").description("show help for a command").helpGroup("Others:"),
  );
  configure(program, io);
  return program;
}

function configure(command: Command, io: CommandIo, path: string = command.name()): void {
  command
    .exitOverride()
    .showSuggestionAfterError(true)
    .configureOutput({
      writeOut: io.writeOut,
      writeErr: io.writeError,
      getOutHelpWidth: () => 80,
      getErrHelpWidth: () => 80,
      outputError(text, write) {
        const missing = command.options.find(({ flags }) => text.includes(`'${flags}' not specified`));
        const variable = missing?.envVar === undefined ? "" : `, nor ${missing.envVar}`;
        write(`${errorLine(text.trim() + variable, command, path)}\n`);
      },
    });
  for (const subcommand of command.commands) configure(subcommand, io, `${path} ${subcommand.name()}`);
}

function errorLine(text: string, { commands }: Command, path: string): string {
  const unknown = /unknown command '([^']*)'/.exec(text)?.[1];
  const within = commands.find((group) => group.commands.some((each) => each.name() === unknown));
  if (within !== undefined)
    return `error: unknown command '${unknown}' (did you mean ${within.name()} ${unknown}?)`;
  const [message = "", ...suggestion] = text.split("\n(Did you mean ");
  const hint = suggestion.length === 0 ? `; see ${path} --help` : ` (did you mean ${suggestion.join("")}`;
  return inOneLine(message.replace(/\.$/, "") + hint);
}

function inOneLine(text: string): string {
  return printable(text).replaceAll("\n", " ");
}

function exitCodeOf(error: unknown, io: CommandIo): ExitCode {
  if (error instanceof CommanderError) {
    // Commander has written its own line; requested help and version are no errors.
    return error.exitCode === 0 ? exitCodes.asExpected : exitCodes.usage;
  }
  if (error instanceof CommandError) {
    io.writeError(`error: ${inOneLine(error.message)}\n`);
    return error.exitCode;
  }
  const stack = error instanceof Error ? error.stack : undefined;
  io.writeError(`countersign failed: ${printable(stack ?? messageOf(error))}\n`);
  return exitCodes.internal;
}
