import path from "node:path";
import { importKeys, type ImportedKeys } from "@countersign/http-message-signatures";
import { keyidOfFile } from "@countersign/http-message-signatures/door";
import { Command } from "commander";
import { exitCodes, type CommandIo, type ExitCode } from "../command-io.ts";
import { readNamedFile } from "../input.ts";
import { keyFaults, keyFileJson, keyFileTable, reasonOf } from "../operator/key-file-report.ts";

interface CheckFlags {
  readonly keyid?: string | undefined;
  readonly json?: boolean | undefined;
}

const maxKeys = 10_000;

const notes = `
A file holds one public key as PEM or base64, or as JSON a JWK, a JWK Set, or a
record of keyid to key. Compare the thumbprint with the key's owner over another
line. A private key is refused, and nothing of any key is printed.

Examples:
  countersign keys check service-1.public.pem
  curl --fail --silent https://service.example/jwks.json \\
    | countersign keys check /dev/stdin --json

Exit codes:
  0  every key can be used   1  one cannot, or there is none
  2  usage, or the file cannot be read
`;

/** `countersign keys check`: whether the public keys of a file can be used, and which they are. */
export function keysCheckCommand(io: CommandIo, finish: (code: ExitCode) => void): Command {
  return new Command("check")
    .description("vet the public keys of a file and print keyid, algorithm, RFC 7638 thumbprint and validity")
    .argument("<file>", "PEM, JWK, JWK Set, base64 …")
    .option("--keyid <id>", "the keyid of a key that states none (default: the file's name)")
    .option("--json", "print a JSON document for each key")
    .addHelpText("after", notes)
    .action((file: string, flags: CheckFlags) => {
      finish(checkKeys(file, flags, io));
    });
}

function checkKeys(file: string, { keyid, json }: CheckFlags, io: CommandIo): ExitCode {
  const name = path.basename(file);
  const content = readNamedFile("keys check", file);
  let imported: ImportedKeys;
  try {
    imported = importKeys(content, { keyid: keyid ?? keyidOfFile(name) ?? path.parse(name).name, maxKeys });
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    io.writeError(`error: ${reasonOf(error)}\n`);
    return exitCodes.otherwise;
  }
  const keys = [...imported.keys.values()];
  if (keys.length > 0)
    io.writeOut(json === true ? keyFileJson(keys) : keyFileTable(keys, io.clock(), io.columns));
  io.writeError(keyFaults(imported));
  if (keys.length + imported.faults.length === 0) io.writeError("error: the file holds no key\n");
  return imported.faults.length === 0 && keys.length > 0 ? exitCodes.asExpected : exitCodes.otherwise;
}
