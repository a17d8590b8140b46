import { Command } from "commander";
import type { CommandIo, ExitCode } from "../command-io.ts";
import { loadPlaying } from "../load-package.ts";
import type { KeygenFlags } from "../playing/keygen.ts";

const notes = `
Examples:
  countersign keygen --out keys --keyid test

Exit codes:
  0  written   2  usage, or the files exist
`;

/** `countersign keygen`: a key pair for the sender, and the public half in the form that a platform loads. */
export function keygenCommand(io: CommandIo, finish: (code: ExitCode) => void): Command {
  return new Command("keygen")
    .description(
      "make an Ed25519 key pair: <keyid>.private.pem, <keyid>.public.pem and an entry in keys.json",
    )
    .option("--out <directory>", "where the files go; created when missing", ".")
    .option("--keyid <id>", "name of the key (default: a random one)")
    .option("--force", "replace what exists under this keyid")
    .option("--json", "print the keyid and the file names as JSON")
    .addHelpText("after", notes)
    .action(async (flags: KeygenFlags) => {
      const { runKeygen } = await loadPlaying("keygen", () => import("../playing/keygen.ts"));
      finish(runKeygen(flags, io));
    });
}
