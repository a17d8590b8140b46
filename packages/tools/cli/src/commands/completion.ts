import { Argument, Command } from "commander";
import { exitCodes, type CommandIo, type ExitCode } from "../command-io.ts";
import { commandTree } from "../completion/command-tree.ts";
import { completionScript, shells, type Shell } from "../completion/scripts.ts";
import { jsonLine } from "../json-output.ts";
import { eventTypes } from "./trigger.ts";

const notes = `
bash  eval "$(countersign completion bash)" in ~/.bashrc
zsh   countersign completion zsh > a file _countersign in a folder of $fpath
fish  countersign completion fish > ~/.config/fish/completions/countersign.fish

Exit codes:
  0  printed   2  usage
`;

/** `countersign completion`: a script that teaches a shell the commands and their flags. */
export function completionCommand(io: CommandIo, finish: (code: ExitCode) => void): Command {
  return new Command("completion")
    .description("print the script that completes commands and flags in a shell")
    .addArgument(new Argument("<shell>", "which shell").choices(shells))
    .option("--json", "print the script in a JSON document")
    .addHelpText("after", notes)
    .action((shell: Shell, { json }: { readonly json?: boolean }, command: Command) => {
      const suggested = new Map([["trigger", eventTypes]]);
      const script = completionScript(shell, commandTree(command.parent ?? command, suggested));
      io.writeOut(json === true ? jsonLine({ shell, script }) : script);
      finish(exitCodes.asExpected);
    });
}
