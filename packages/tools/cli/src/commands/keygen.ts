import { Command } from "commander";
import { UsageError, type CommandIo, type Switches, type Texts } from "../command-io.ts";
import { loadPlaying } from "../load-package.ts";
import { jsonDocument, printable } from "../output.ts";

interface KeygenFlags extends Texts<"keyid">, Switches<"force" | "json"> {
  readonly out: string;
}

const notes = `
Examples:
  countersign keygen --out keys --keyid test

Exit codes:
  0  written   2  usage, or the files exist
`;

export function keygenCommand(io: CommandIo): Command {
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
      const { keyid, ...files } = await makeKeyFiles(flags);
      if (flags.json === true) {
        io.writeOut(jsonDocument({ keyid, ...files }));
        return;
      }
      const lines = [
        `keyid        ${keyid}`,
        `private key  ${printable(files.privateKeyFile)}  (keep it with the sender)`,
        `public key   ${printable(files.publicKeyFile)}`,
        `platform     ${printable(files.keysFile)}  (keyid to public key)`,
      ];
      io.writeOut(`${lines.join("\n")}\n`);
    });
}

async function makeKeyFiles({ out: directory, keyid, force }: KeygenFlags) {
  const { generateKeyPair, writeKeyFiles } = await loadPlaying(
    "keygen",
    () => import("@countersign/devtools/sandbox"),
  );
  const { assertFileSafeKeyid, KeyFileError } = await import("@countersign/devtools/internal");
  try {
    if (keyid !== undefined) assertFileSafeKeyid(keyid);
    const pair = generateKeyPair({ keyid });
    return { keyid: pair.keyid, ...writeKeyFiles(pair, { directory, force }) };
  } catch (error) {
    if (!(error instanceof KeyFileError)) throw error;
    throw new UsageError(error.message, { cause: error });
  }
}
