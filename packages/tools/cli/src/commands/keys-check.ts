import { Command } from "commander";
import type { CommandIo, Finish } from "../command-io.ts";
import type { CheckFlags } from "../operator/check-keys.ts";

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

export function keysCheckCommand(io: CommandIo, finish: Finish): Command {
  return new Command("check")
    .description("vet the public keys of a file and print keyid, algorithm, RFC 7638 thumbprint and validity")
    .argument("<file>", "PEM, JWK, JWK Set, base64 …")
    .option("--keyid <id>", "the keyid of a key that states none (default: the file's name)")
    .option("--json", "print a JSON document for each key")
    .addHelpText("after", notes)
    .action(async (file: string, flags: CheckFlags) => {
      const { checkKeys } = await import("../operator/check-keys.ts");
      finish(checkKeys(file, flags, io));
    });
}
