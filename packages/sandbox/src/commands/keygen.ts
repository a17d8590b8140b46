import { Command } from "commander";
import { exitCodes, type CommandIo, type ExitCode } from "../command-io.ts";
import { assertFileSafeKeyid, writeKeyFiles, type KeyFiles } from "../key-files.ts";
import { generateKeyPair } from "../key-pair.ts";

interface KeygenFlags {
  readonly out: string;
  readonly keyid?: string | undefined;
  readonly force?: boolean | undefined;
  readonly json?: boolean | undefined;
}

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
    .action(({ out, keyid, force, json }: KeygenFlags) => {
      if (keyid !== undefined) assertFileSafeKeyid(keyid);
      const pair = generateKeyPair({ keyid });
      const files = writeKeyFiles(pair, { directory: out, force });
      if (json === true) io.writeOut(`${JSON.stringify({ keyid: pair.keyid, ...files }, undefined, 2)}\n`);
      else io.writeOut(formatFiles(pair.keyid, files));
      finish(exitCodes.asExpected);
    });
}

function formatFiles(keyid: string, files: KeyFiles): string {
  return [
    `keyid        ${keyid}`,
    `private key  ${files.privateKeyFile}  (keep it with the sender)`,
    `public key   ${files.publicKeyFile}`,
    `platform     ${files.keysFile}  (keyid to public key)`,
    "",
  ].join("\n");
}
