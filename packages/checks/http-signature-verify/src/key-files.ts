import { open, opendir, stat } from "node:fs/promises";
import path from "node:path";
import { types } from "node:util";
import { quoteForLog } from "@countersign/core";
import {
  importKeys,
  type ImportedKeys,
  type KeyValidity,
  type VerificationKey,
} from "@countersign/http-message-signatures";
import { keyidOfFile } from "@countersign/http-message-signatures/door";

/** Bounds of {@link readKeyFiles}. */
export interface KeyFileBounds {
  readonly maxKeys: number;
  readonly maxBytes: number;
  readonly validity: (keyid: string) => KeyValidity | undefined;
}

const maxAttempts = 3;
const maxEntriesPerKey = 10;

/**
 * All keys of a directory's files, or of one file: each of them, or none. Throws an Error that names the file and shows nothing of
 * its content.
 */
export async function readKeyFiles(place: string, bounds: KeyFileBounds): Promise<ImportedKeys> {
  for (let attempt = 1; ; attempt += 1) {
    // oxlint-disable no-await-in-loop -- again when it has changed meanwhile
    const before = await listFiles(place, bounds);
    try {
      const read = await readAll(before, bounds);
      if (isSame(before, await listFiles(place, bounds))) return read;
    } catch (error) {
      if (attempt === maxAttempts || isSame(before, await listFiles(place, bounds))) throw error;
    }
    // oxlint-enable no-await-in-loop
    if (attempt === maxAttempts) throw new Error("the key files change while they are read");
  }
}

interface ListedFile {
  readonly file: string;
  readonly keyid: string;
  /** What changes with the content: half of an old set and half of a new one are no set. */
  readonly state: string;
}

async function listFiles(place: string, { maxKeys }: KeyFileBounds): Promise<readonly ListedFile[]> {
  const stats = await stat(place);
  const names = stats.isDirectory() ? await keyFileNames(place, maxKeys) : [""];
  if (names.length === 0) throw new Error("the directory holds no key file");
  return Promise.all(
    names.map(async (name) => {
      const file = path.join(place, name);
      // Follows links: with Kubernetes each file is one to a directory that is exchanged.
      const { dev, ino, size, mtimeMs, ctimeMs } = await stat(file);
      const keyid = keyidOfFile(path.basename(file)) ?? path.parse(file).name;
      return { file, keyid, state: [file, dev, ino, size, mtimeMs, ctimeMs].join(" ") };
    }),
  );
}

async function keyFileNames(directory: string, maxKeys: number): Promise<readonly string[]> {
  const names: string[] = [];
  let entries = 0;
  for await (const entry of await opendir(directory)) {
    entries += 1;
    if (entries > maxEntriesPerKey * maxKeys || names.length > maxKeys) {
      throw new Error(`the directory holds more than ${maxKeys} key files, or too much beside them`);
    }
    if (keyidOfFile(entry.name) !== undefined && !entry.isDirectory()) names.push(entry.name);
  }
  return names;
}

function isSame(one: readonly ListedFile[], other: readonly ListedFile[]): boolean {
  const states = new Set(other.map(({ state }) => state));
  return one.length === other.length && one.every(({ state }) => states.has(state));
}

async function readAll(files: readonly ListedFile[], bounds: KeyFileBounds): Promise<ImportedKeys> {
  const { maxKeys, validity } = bounds;
  const keys = new Map<string, VerificationKey>();
  for (const { file, keyid } of files) {
    // oxlint-disable-next-line no-await-in-loop -- one file in memory at a time
    const content = await readBytes(file, bounds);
    const imported = inFile(file, () => importKeys(content, { keyid, maxKeys, validity }));
    for (const { keyid: id, error } of imported.faults) throw faultIn(file, error, id);
    for (const [id, key] of imported.keys) {
      if (keys.has(id)) throw faultIn(file, new Error("it stands in another file too"), id);
      keys.set(id, key);
    }
  }
  if (keys.size > maxKeys) throw new Error(`the files hold more than ${maxKeys} keys`);
  if (keys.size === 0) throw new Error("the files hold no key");
  return { keys, faults: [] };
}

async function readBytes(file: string, { maxBytes }: KeyFileBounds): Promise<Buffer> {
  // Before it is opened: that of a pipe would wait for a writer.
  const stats = await stat(file);
  if (!stats.isFile()) throw faultIn(file, new Error("it is no file"));
  const handle = await open(file, "r");
  try {
    const buffer = Buffer.alloc(Math.min(stats.size, maxBytes) + 1);
    const { bytesRead } = await handle.read(buffer, 0, buffer.length, 0);
    if (bytesRead > maxBytes) throw faultIn(file, new Error(`it has more than ${maxBytes} bytes`));
    // Longer than it was: it is being written.
    if (bytesRead > stats.size) throw faultIn(file, new Error("it changes while it is read"));
    return buffer.subarray(0, bytesRead);
  } finally {
    await handle.close();
  }
}

function inFile<T>(file: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw faultIn(file, error);
  }
}

function faultIn(file: string, error: unknown, keyid?: string): Error {
  const reason = types.isNativeError(error) ? error.message : "it cannot be read";
  const place = `${quoteForLog(path.basename(file), 128)}${keyid === undefined ? "" : `, keyid ${quoteForLog(keyid)}`}`;
  return new Error(`${place}: ${reason}`, { cause: error });
}
