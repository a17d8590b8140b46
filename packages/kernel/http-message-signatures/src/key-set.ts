import { createHash } from "node:crypto";
import { types } from "node:util";
import type { Jwk } from "./algorithms/algorithm.ts";
import { importVerificationKey } from "./key-import.ts";
import { contentOf, withoutByteOrderMark, type PublicKeyInput } from "./public-key-input.ts";
import { isForOthers } from "./public-key-jwk.ts";
import {
  isRecord,
  isVerificationKey,
  keyError,
  type KeyValidity,
  type VerificationKey,
} from "./verification-key.ts";

export interface KeysOptions {
  /** The keyid of a key that states none; without it such a key is a fault. */
  readonly keyid?: string | undefined;
  /** Keys at most; a document with more is refused as a whole. Default 100. */
  readonly maxKeys?: number | undefined;
  /** The validity of a key beside what it states itself; default none. */
  readonly validity?: ((keyid: string) => KeyValidity | undefined) | undefined;
}

export interface KeyFault {
  /** As in the document, any text; undefined when it states none. */
  readonly keyid: string | undefined;
  /** Its message holds nothing of the key. */
  readonly error: TypeError;
  /** True for a key of a JWK Set that is for another purpose, or of an unknown kind, which RFC 7517 section 5 lets a reader ignore. */
  readonly isForOthers: boolean;
}

export interface ImportedKeys {
  readonly keys: ReadonlyMap<string, VerificationKey>;
  readonly faults: readonly KeyFault[];
}

interface Entry {
  readonly keyid: string | undefined;
  readonly key: unknown;
  readonly isForOthers: boolean;
}

/**
 * Imports every key of a document: a JWK Set (RFC 7517 section 5) with `kid`, else the RFC 7638 thumbprint, as keyid; a JWK; a record of
 * keyid to key; or one key in any form of {@link importVerificationKey}. In a set, several keys may have one `kid` (RFC 7517 section 4.5):
 * the keyid means the only one of them that can verify signatures. Refused keys, and all keys of a keyid that means several, are in `faults`.
 * Throws a TypeError for a document that is none of these, has too many keys, or none in a record or file.
 */
export function importKeys(document: unknown, options: KeysOptions = {}): ImportedKeys {
  const importing = importEach(document, options);
  for (;;) {
    const { done, value } = importing.next();
    if (done === true) return value;
  }
}

/** As {@link importKeys}, with a step before each key, which may take over a millisecond. */
function* importEach(
  document: unknown,
  { keyid: keyidOfDocument, maxKeys = 100, validity }: KeysOptions,
): Generator<undefined, ImportedKeys, void> {
  const entries = entriesOf(contentOf(document), keyidOfDocument);
  if (entries.length > maxKeys) throw keyError(`the document holds more than ${maxKeys} keys`);
  const keys = new Map<string, VerificationKey>();
  const faults: KeyFault[] = [];
  const inputs = new Map<string, PublicKeyInput[]>();
  for (const { keyid: stated, key, isForOthers: isOther } of entries) {
    yield;
    try {
      const input = inputOf(key);
      const keyid = stated ?? thumbprintOf(input);
      // A key for others throws here, and says why; it does not share the keyid with a key that verifies.
      if (isOther) importVerificationKey(keyid, input);
      const sharing = inputs.get(keyid);
      if (sharing === undefined) inputs.set(keyid, [input]);
      else sharing.push(input);
    } catch (error) {
      faults.push({ keyid: stated, error: typeErrorOf(error), isForOthers: isOther });
    }
  }
  for (const [keyid, given] of inputs) {
    yield;
    try {
      keys.set(keyid, importVerificationKey(keyid, oneInput(keyid, given), validity?.(keyid)));
    } catch (error) {
      faults.push({ keyid, error: typeErrorOf(error), isForOthers: false });
    }
  }
  return { keys, faults };
}

// Leaves out what editors and tools put beside key files.
const keyFile = /^(?<keyid>[^.].*?)(?:\.public)?\.(?:pem|pub|jwk|jwks|json)$/;

/** Returns the keyid in a file's name, `<keyid>.pem` or `<keyid>.public.pem`; undefined for other files. */
function keyidOfFile(name: string): string | undefined {
  return keyFile.exec(name)?.groups?.["keyid"];
}

/** For whoever reads documents of keys. */
export const keyDocuments = { importEach, keyidOfFile, withoutByteOrderMark };

function entriesOf(document: unknown, keyid: string | undefined): readonly Entry[] {
  if (!isRecord(document)) return [{ keyid, key: document, isForOthers: false }];
  const { keys, kty, kid } = document;
  if (kty !== undefined) return [{ keyid: statedKeyid(kid) ?? keyid, key: document, isForOthers: false }];
  if (Array.isArray(keys)) return keys.map(memberOfSet);
  const entries = Object.entries(document);
  if (entries.length === 0) throw keyError("the document holds no key");
  return entries.map(([name, key]) => ({ keyid: name, key, isForOthers: false }));
}

function memberOfSet(key: unknown): Entry {
  if (!isRecord(key)) return { keyid: undefined, key, isForOthers: false };
  return { keyid: statedKeyid(key["kid"]), key, isForOthers: isForOthers(key) };
}

// A kid that is no text stays in the JWK, which is then refused.
function statedKeyid(kid: unknown): string | undefined {
  return typeof kid === "string" ? kid : undefined;
}

function thumbprintOf(input: unknown): string {
  if (!isRecord(input)) throw keyError("the key has no keyid");
  return jwkThumbprint(importVerificationKey("unnamed", inputOf(input)));
}

/** The keys of one keyid as one input, in which importVerificationKey finds the only one that fits. */
function oneInput(keyid: string, inputs: readonly PublicKeyInput[]): PublicKeyInput {
  const [first] = inputs;
  if (first !== undefined && inputs.length === 1) return first;
  return { keys: inputs.filter(isRecord).map((jwk) => withKid(jwk, keyid)) };
}

function withKid(jwk: Readonly<Record<string, unknown>>, kid: string): Jwk {
  return { ...jwk, kid };
}

function typeErrorOf(error: unknown): TypeError {
  if (error instanceof TypeError) return error;
  throw error;
}

function inputOf(key: unknown): PublicKeyInput {
  if (typeof key === "string" || types.isUint8Array(key)) return key;
  if (isRecord(key)) return { ...key };
  throw keyError("expected a public key as text or JWK");
}

// RFC 7638 section 3.2 and RFC 8037 section 2: members that are required to represent the key, in lexicographic order.
const requiredMembers = ["crv", "e", "kty", "n", "x", "y"] as const;

/**
 * Returns the JWK thumbprint by SHA-256 (RFC 7638), in base64url. Throws a TypeError for a key not of importVerificationKey, and for a
 * secret, which a thumbprint would let others try guesses against (RFC 7638 section 7).
 */
export function jwkThumbprint(key: VerificationKey): string {
  if (!isVerificationKey(key))
    throw new TypeError("jwkThumbprint: the key is not one of importVerificationKey");
  if (key.publicKey.type !== "public") {
    throw new TypeError("jwkThumbprint: the key is a secret; only a public key has a thumbprint to show");
  }
  const jwk = key.publicKey.export({ format: "jwk" });
  // JSON.stringify leaves out what is undefined: RSA has no crv, Ed25519 no y.
  const json = JSON.stringify(Object.fromEntries(requiredMembers.map((name) => [name, jwk[name]])));
  return createHash("sha256").update(json).digest("base64url");
}
