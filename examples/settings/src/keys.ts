import { statSync } from "node:fs";
import { quoteForLog } from "@countersign/core";
import { importKeys, type VerificationKey } from "@countersign/http-message-signatures";
import { directoryKeys, jwksKeys, type Keys, type LiveKeyStore } from "@countersign/http-signature-verify";
import type { Environment } from "./environment.ts";
import { reasonOf, SettingError } from "./setting-error.ts";
import { readTextFile } from "./text-file.ts";

/** Where the public keys of the payouts come from. */
export type KeySource =
  | { readonly kind: "fixed"; readonly keys: ReadonlyMap<string, VerificationKey> }
  /** A directory, or one file. */
  | { readonly kind: "files"; readonly path: string }
  | { readonly kind: "url"; readonly url: URL };

/** Keys that follow their source until they are closed. */
export interface OpenKeys {
  readonly keys: Keys;
  /** Of the keys that are accepted now. */
  keyids(): readonly string[];
  close(): void;
}

const variable = "PAYOUT_KEYS";
const expected =
  "a file or directory of Ed25519 public keys (SPKI PEM, JWK, JWK Set, JSON of keyid to key), the https URL of a JWK Set, or JSON";

/** Tells what PAYOUT_KEYS names. Throws a SettingError for keys in the variable itself or in a pipe that cannot be used. */
export function readKeySource(env: Environment): KeySource {
  const text = env[variable];
  if (text === undefined || text.trim() === "") {
    const remedy = "npm run countersign -- keygen makes a key pair";
    throw new SettingError(variable, `${expected}, got nothing; ${remedy}`);
  }
  if (/^https?:/i.test(text)) return { kind: "url", url: readUrl(text, env["NODE_ENV"]) };
  if (text.trimStart().startsWith("{")) return { kind: "fixed", keys: importAll(text) };
  // What `<(command)` of a shell is can be read only once.
  if (isPipe(text)) return { kind: "fixed", keys: importAll(readTextFile(text)) };
  return { kind: "files", path: text };
}

/** Reads the keys, and again when they change. Rejects with a SettingError when there are none; it never shows a key. */
export async function openKeys(source: KeySource): Promise<OpenKeys> {
  if (source.kind === "fixed")
    return { keys: source.keys, keyids: () => [...source.keys.keys()], close: () => {} };
  const store = openStore(source);
  try {
    await store.ready();
  } catch (error) {
    store.close();
    // Where it came from is not quoted for a URL, whose query may be a secret.
    const got = source.kind === "files" ? source.path : undefined;
    throw new SettingError(variable, `${expected} (${reasonOf(error)})`, got);
  }
  return { keys: store, keyids: () => store.keys().map(({ keyid }) => keyid), close: () => store.close() };
}

function openStore(source: Exclude<KeySource, { readonly kind: "fixed" }>): LiveKeyStore {
  if (source.kind === "files") return directoryKeys(source.path);
  return jwksKeys(source.url, { allowHttpOnLoopback: true });
}

function readUrl(text: string, nodeEnv: string | undefined): URL {
  if (!URL.canParse(text)) throw new SettingError(variable, `${expected}; this is no URL`);
  const url = new URL(text);
  const isLoopback = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/.test(url.hostname);
  if (url.protocol === "http:" && (!isLoopback || nodeEnv === "production")) {
    throw new SettingError(variable, `${expected}; http is for work on loopback alone`);
  }
  if (url.username !== "" || url.password !== "") {
    throw new SettingError(variable, `${expected}; a URL without user name and password`);
  }
  return url;
}

function importAll(text: string): ReadonlyMap<string, VerificationKey> {
  try {
    const { keys, faults } = importKeys(text);
    const fault = faults.find(({ isForOthers }) => !isForOthers || keys.size === 0);
    if (fault !== undefined) {
      throw new TypeError(`keyid ${quoteForLog(fault.keyid ?? "")}: ${fault.error.message}`);
    }
    if (keys.size > 0) return keys;
  } catch (error) {
    throw new SettingError(variable, `${expected} (${reasonOf(error)})`);
  }
  throw new SettingError(variable, `${expected}; it holds no key`);
}

function isPipe(file: string): boolean {
  return statSync(file, { throwIfNoEntry: false })?.isFIFO() ?? false;
}
