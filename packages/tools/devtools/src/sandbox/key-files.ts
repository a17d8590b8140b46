import { lstatSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { keyDocuments } from "@countersign/http-message-signatures/internal";
import { isObject } from "./json-text.ts";
import type { generateKeyPair } from "./key-pair.ts";
import { readThrown } from "../loopback/index.ts";

type KeyFiles = ReturnType<typeof writeKeyFiles>;

export interface KeyFileOptions {
  /** Created when missing. */
  readonly directory: string;
  /** Replace files and the entry of `keys.json` with the same keyid. Default false. */
  readonly force?: boolean | undefined;
}

/** Nothing was written; the message says why and what to do. */
export class KeyFileError extends Error {
  override readonly name: string = "KeyFileError";
}

// No separator, no leading dot or dash: the keyid becomes a file name. `__proto__` starts with no letter or digit either.
const fileSafeKeyid = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

/**
 * Writes `<keyid>.private.pem` (mode for its owner alone), `<keyid>.public.pem` and an entry in `keys.json`. That is an object from keyid to
 * public key as a platform loads it. Writes nothing when something of that keyid exists without `force`. Throws a KeyFileError.
 */
export function writeKeyFiles(
  pair: ReturnType<typeof generateKeyPair>,
  { directory, force = false }: KeyFileOptions,
) {
  assertFileSafeKeyid(pair.keyid);
  const files = {
    privateKeyFile: join(directory, `${pair.keyid}.private.pem`),
    publicKeyFile: join(directory, `${pair.keyid}.public.pem`),
    keysFile: join(directory, "keys.json"),
  };
  try {
    makeFolder(directory);
    const keys = readKeys(files.keysFile);
    if (!force) refuseToReplace(files, keys, pair.keyid);
    replaceFile(files.privateKeyFile, pair.privateKeyPem, 0o600);
    replaceFile(files.publicKeyFile, pair.publicKeyPem, 0o644);
    const entered = { ...keys, [pair.keyid]: pair.publicKeyPem };
    replaceFile(files.keysFile, `${JSON.stringify(entered, undefined, 2)}\n`, 0o644);
  } catch (error) {
    if (error instanceof KeyFileError) throw error;
    throw new KeyFileError(`cannot write the key files: ${readThrown(error).message}`, { cause: error });
  }
  return files;
}

/** Throws a KeyFileError when a keyid cannot name files, for example with a path separator. */
export function assertFileSafeKeyid(keyid: string): void {
  if (fileSafeKeyid.test(keyid)) return;
  throw new KeyFileError(
    "keyid must be 1 to 64 letters, digits, dots, dashes or underscores, the first a letter or digit, " +
      "because it names the files",
  );
}

function readKeys(file: string): Record<string, unknown> {
  if (!exists(file)) return {};
  let keys: unknown;
  try {
    keys = JSON.parse(keyDocuments.withoutByteOrderMark(readFileSync(file, "utf8")));
  } catch (error) {
    throw new KeyFileError(`${file} exists and is not readable as JSON; move it away`, { cause: error });
  }
  if (!isObject(keys)) throw new KeyFileError(`${file} exists and holds no JSON object; move it away`);
  return keys;
}

function refuseToReplace(files: KeyFiles, keys: Record<string, unknown>, keyid: string): void {
  const taken = [files.privateKeyFile, files.publicKeyFile].find(exists);
  if (taken !== undefined) throw new KeyFileError(`${taken} exists; --force replaces it`);
  if (Object.hasOwn(keys, keyid)) {
    throw new KeyFileError(`${files.keysFile} already has a key named ${keyid}; --force replaces it`);
  }
}

// A new file and a rename: this mode, no symbolic link followed, and a reader of keys.json never sees half of it.
function replaceFile(file: string, text: string, mode: number): void {
  const temporary = `${file}.${process.pid}.tmp`;
  try {
    writeFileSync(temporary, text, { flag: "wx", mode });
    renameSync(temporary, file);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
}

function exists(file: string): boolean {
  return lstatSync(file, { throwIfNoEntry: false }) !== undefined;
}

// Step by step: where the system refuses a folder as if its parent were missing, as /proc does, `recursive` tries again forever.
function makeFolder(folder: string): void {
  const absolute = resolve(folder);
  if (isFolder(absolute)) return;
  const parent = dirname(absolute);
  if (parent !== absolute) makeFolder(parent);
  try {
    mkdirSync(absolute, { mode: 0o700 });
  } catch (error) {
    // Another process may have made it in the meantime.
    if (!isFolder(absolute)) throw error;
  }
}

function isFolder(place: string): boolean {
  return statSync(place, { throwIfNoEntry: false })?.isDirectory() ?? false;
}
