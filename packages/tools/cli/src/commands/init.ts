import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { Command } from "commander";
import { exitCodes, UsageError, type CommandIo, type ExitCode } from "../command-io.ts";
import { jsonLine } from "../json-output.ts";
import { packageVersion } from "../package-version.ts";
import { printable } from "../printable.ts";

const notes = `
Folder and flags are those of npm create countersign: --framework express or
fastify, --store sqlite, postgres or redis, --language ts or js, --name,
--install, --yes.

The platform is written by create-countersign in the version of this command,
which npm fetches from the registry that it is set to. At a terminal it asks
before that. Elsewhere it runs nothing and prints the command, unless --yes is
given, which also takes the defaults for what no flag says.

Examples:
  countersign init my-platform
  countersign init my-platform --store postgres --language js --yes

Exit codes:
  0  written   1  not written   2  usage
`;

/** `countersign init`: another name of `npm create countersign`. */
export function initCommand(io: CommandIo, finish: (code: ExitCode) => void): Command {
  return (
    new Command("init")
      .description("write a small platform that runs: npm create countersign")
      .argument("[words...]", "the folder, and flags")
      // create-countersign reads them, and says what is wrong with them.
      .allowUnknownOption()
      .option("--json", "print the command of npm as JSON, and run nothing")
      .addHelpText("after", notes)
      .action(async (words: readonly string[], { json }: { readonly json?: boolean }) => {
        const asGiven = words.length === 0 ? [] : ["--", ...words];
        const command = ["create", `countersign@${packageVersion()}`, ...asGiven];
        if (json === true) io.writeOut(jsonLine({ command: ["npm", ...command] }));
        finish(json === true ? exitCodes.asExpected : await create(io, command, words));
      })
  );
}

async function create(
  io: CommandIo,
  command: readonly string[],
  words: readonly string[],
): Promise<ExitCode> {
  const isAgreed = words.includes("--yes") || words.includes("-y");
  const shown = ["npm", ...command].map((word) => quoted(word)).join(" ");
  io.writeOut(`${printable(shown)}\n`);
  if (!isAgreed && io.ask === undefined) {
    io.writeError("nobody to ask at a terminal: nothing was run; type this command, or add --yes\n");
    return exitCodes.otherwise;
  }
  if (!isAgreed && !/^y(?:es)?$/i.test((await io.ask?.("Fetch it, and run it? [y/N] ")) ?? "")) {
    return exitCodes.otherwise;
  }
  // The question has been answered: npm has none of its own.
  return runNpm([command[0] ?? "", "--yes", ...command.slice(1)]);
}

function runNpm(args: readonly string[]): ExitCode {
  const script = npmScript();
  const [file, before] = script === undefined ? ["npm", []] : [process.execPath, [script]];
  const { status, error } = spawnSync(file, [...before, ...args], { stdio: "inherit" });
  if (error !== undefined) throw new UsageError(`npm cannot be started: ${error.message}`, { cause: error });
  if (status === exitCodes.asExpected || status === exitCodes.usage) return status;
  return exitCodes.otherwise;
}

/** npm's own program, as on Windows only a shell starts `npm`, and what was typed is for none to read. */
function npmScript(): string | undefined {
  const running = process.env["npm_execpath"] ?? "";
  const home = dirname(process.execPath);
  const places = [
    ...(/npm-cli\.c?js$/.test(running) ? [running] : []),
    join(home, "node_modules/npm/bin/npm-cli.js"),
    join(home, "../lib/node_modules/npm/bin/npm-cli.js"),
  ];
  return places.find((place) => existsSync(place));
}

/** A word as a shell of POSIX reads it. */
function quoted(word: string): string {
  if (/^[\w@%+=:,./-]+$/.test(word)) return word;
  return `'${word.replaceAll("'", String.raw`'\''`)}'`;
}
