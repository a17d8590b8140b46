import path from "node:path";
import type { ImportedKeys, VerificationKey } from "@countersign/http-message-signatures";
import { importKeys, jwkThumbprint } from "@countersign/http-message-signatures";
import { keyDocuments } from "@countersign/http-message-signatures/internal";
import { Command } from "commander";
import { exitCodes, type CommandIo, type ExitCode, type Finish, type Texts } from "../command-io.ts";
import { readNamedFile } from "../input.ts";
import { shownKey } from "../operator/key-text.ts";
import { jsonLine, printableLine } from "../output.ts";
import { tableText } from "../table.ts";

type CheckFlags = Texts<"keyid"> & { readonly json?: true };

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

export function keysCheckCommand(io: CommandIo, finish: Finish): Command {
  return new Command("check")
    .description("vet the public keys of a file and print keyid, algorithm, RFC 7638 thumbprint and validity")
    .argument("<file>", "PEM, JWK, JWK Set, base64 …")
    .option("--keyid <id>", "the keyid of a key that states none (default: the file's name)")
    .option("--json", "print a JSON document for each key")
    .addHelpText("after", notes)
    .action((file: string, flags: CheckFlags) => finish(checkKeys(file, flags, io)));
}

function checkKeys(file: string, { keyid, json }: CheckFlags, io: CommandIo): ExitCode {
  const name = path.basename(file);
  const content = readNamedFile("keys check", file);
  let imported: ImportedKeys;
  try {
    imported = importKeys(content, {
      keyid: keyid ?? keyDocuments.keyidOfFile(name) ?? path.parse(name).name,
      maxKeys,
    });
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    io.writeError(`error: ${reasonOf(error)}\n`);
    return exitCodes.otherwise;
  }
  const { faults } = imported;
  const keys = [...imported.keys.values()];
  if (keys.length > 0) io.writeOut(json === true ? keysJson(keys) : keysTable(keys, io));
  for (const fault of faults) {
    const which = fault.keyid === undefined ? "a key" : `key ${shownKey(fault.keyid)}`;
    io.writeError(`error: ${which}: ${reasonOf(fault.error)}\n`);
  }
  if (keys.length + faults.length === 0) io.writeError("error: the file holds no key\n");
  return faults.length === 0 && keys.length > 0 ? exitCodes.asExpected : exitCodes.otherwise;
}

const titles = ["keyid", "alg", "thumbprint (RFC 7638)", "validity"];

function keysTable(keys: readonly VerificationKey[], { clock, columns }: CommandIo): string {
  const rows = keys.map((key) => [
    shownKey(key.keyid),
    key.alg,
    jwkThumbprint(key),
    validityOf(key, clock()),
  ]);
  return tableText(titles, rows, { whole: 3, columns });
}

function keysJson(keys: readonly VerificationKey[]): string {
  return keys
    .map((key) => {
      const { publicKey: _, ...members } = key;
      return jsonLine({ ...members, thumbprint: jwkThumbprint(key) });
    })
    .join("");
}

function reasonOf({ message }: Error): string {
  return printableLine(message.replace(/^importVerificationKey: /, ""));
}

function validityOf({ notBefore, notAfter, revokedAt }: VerificationKey, now: number): string {
  const parts = [
    revokedAt === undefined ? "" : `${revokedAt <= now ? "revoked" : "to be revoked"} ${dateOf(revokedAt)}`,
    notBefore === undefined ? "" : `${notBefore <= now ? "since" : "not before"} ${dateOf(notBefore)}`,
    notAfter === undefined ? "" : `${notAfter < now ? "ended" : "until"} ${dateOf(notAfter)}`,
  ];
  return parts.filter((part) => part !== "").join(", ") || "no limit";
}

function dateOf(unixSeconds: number): string {
  return new Date(unixSeconds * 1000).toISOString().replace(".000Z", "Z");
}
