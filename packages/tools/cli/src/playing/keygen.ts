import { assertFileSafeKeyid, KeyFileError, type KeyFiles } from "@countersign/sandbox/protocol";
import { generateKeyPair, writeKeyFiles } from "@countersign/sandbox";
import { exitCodes, UsageError, type CommandIo, type ExitCode } from "../command-io.ts";
import { jsonDocument } from "../json-output.ts";
import { printable } from "../printable.ts";

/** The flags of `countersign keygen`. */
export interface KeygenFlags {
  readonly out: string;
  readonly keyid?: string | undefined;
  readonly force?: boolean | undefined;
  readonly json?: boolean | undefined;
}

interface NamedKeyFiles extends KeyFiles {
  readonly keyid: string;
}

/** Makes a key pair and its files, and says where they are. Throws a UsageError. */
export function runKeygen(flags: KeygenFlags, io: CommandIo): ExitCode {
  const files = makeKeyFiles(flags);
  io.writeOut(flags.json === true ? jsonDocument(files) : formatFiles(files));
  return exitCodes.asExpected;
}

function makeKeyFiles({ out, keyid, force }: KeygenFlags): NamedKeyFiles {
  try {
    if (keyid !== undefined) assertFileSafeKeyid(keyid);
    const pair = generateKeyPair({ keyid });
    return { keyid: pair.keyid, ...writeKeyFiles(pair, { directory: out, force }) };
  } catch (error) {
    if (!(error instanceof KeyFileError)) throw error;
    throw new UsageError(error.message, { cause: error });
  }
}

function formatFiles(files: NamedKeyFiles): string {
  return [
    `keyid        ${files.keyid}`,
    `private key  ${printable(files.privateKeyFile)}  (keep it with the sender)`,
    `public key   ${printable(files.publicKeyFile)}`,
    `platform     ${printable(files.keysFile)}  (keyid to public key)`,
    "",
  ].join("\n");
}
