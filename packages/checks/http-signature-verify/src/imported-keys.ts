import { isUtf8 } from "node:buffer";
import { KeyObject } from "node:crypto";
import { types } from "node:util";
import { importVerificationKey, type VerificationKey } from "@countersign/http-message-signatures";
import { LRUCache } from "lru-cache";
import type { ConfiguredKey } from "./key-store.ts";
import { keyUnusable } from "./refusals.ts";

const maxKept = 1_000;
// No accepted text is longer; a JWK Set may be, and is then imported each time.
const maxCharacters = 16_384;

/**
 * Imports what a key store returned, and keeps the result by keyid and value: importing and vetting cost as much as a verification. Any
 * other value under the keyid, such as a JWK that says `revoked` now, is another entry.
 */
export class ImportedKeys {
  readonly #byValue = new LRUCache<string, VerificationKey | Error>({ max: maxKept });
  // A KeyObject cannot be changed. One entry each: callers choose the keyid, and a store may give all of them one key.
  readonly #byObject = new WeakMap<KeyObject, readonly [keyid: string, imported: VerificationKey | Error]>();

  /** Throws a GuardError (503, `key-unusable`) for a private or weak key, and for what is none; it names the fault. */
  read(keyid: string, given: ConfiguredKey): VerificationKey {
    const imported = this.#read(keyid, given);
    if (imported instanceof Error) throw keyUnusable(keyid, imported.message, imported);
    return imported;
  }

  #read(keyid: string, given: ConfiguredKey): VerificationKey | Error {
    if (given instanceof KeyObject) {
      const [keptKeyid, kept] = this.#byObject.get(given) ?? [];
      if (kept !== undefined && keptKeyid === keyid) return kept;
      const imported = importKey(keyid, given);
      this.#byObject.set(given, [keyid, imported]);
      return imported;
    }
    const text = textOf(given);
    if (text === undefined || text.length > maxCharacters) return importKey(keyid, text ?? given);
    // A keyid is printable ASCII, so the first NUL ends it.
    const entry = `${keyid}\0${text}`;
    const known = this.#byValue.get(entry);
    if (known !== undefined) return known;
    // The text itself, not the object: what is kept is what was vetted.
    const imported = importKey(keyid, text);
    this.#byValue.set(entry, imported);
    return imported;
  }
}

/** The text that says the same as the value, of which importVerificationKey takes all forms; undefined where there is none. */
function textOf(given: unknown): string | undefined {
  if (typeof given === "string") return given;
  if (types.isUint8Array(given)) return isUtf8(given) ? Buffer.from(given).toString("utf8") : undefined;
  if (typeof given !== "object" || given === null || !("kty" in given || "keys" in given)) return undefined;
  try {
    return JSON.stringify(given);
  } catch {
    return undefined;
  }
}

function importKey(keyid: string, given: ConfiguredKey): VerificationKey | Error {
  try {
    return importVerificationKey(keyid, given);
  } catch (error) {
    return error instanceof Error ? error : new TypeError("the key cannot be read");
  }
}
