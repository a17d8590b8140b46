import { OptionError } from "@countersign/core";
import { hasMethods, optionError, type OptionOwner } from "@countersign/core/internal";
import {
  importVerificationKey,
  type PublicKeyInput,
  type SignatureAlgorithm,
  type VerificationKey,
} from "@countersign/http-message-signatures";
import { isVerificationKey } from "@countersign/http-message-signatures/internal";

/**
 * Finds the key of a keyid, in any form of {@link ConfiguredKey}; undefined or null when it is unknown. A throw or a rejection answers
 * 503, as does what is no key to verify with.
 */
export type KeyLookup = (
  keyid: string,
) => ConfiguredKey | null | undefined | Promise<ConfiguredKey | null | undefined>;

/** Where keys live. The keyid is text from the wire: never a path, a URL, or a key of a plain object. */
export interface KeyStore {
  get: KeyLookup;
  /** One word for traces, such as `postgresql`. Default `other`. */
  readonly engine?: string | undefined;
}

/** A KeyStore that imports its keys itself. */
export interface ImportingKeyStore extends KeyStore {
  get: (keyid: string) => VerificationKey | undefined | Promise<VerificationKey | undefined>;
}

/** A KeyStore that remembers keys, and forgets them when it is told to. */
export interface CachingKeyStore extends ImportingKeyStore {
  /**
   * Forgets the key of `keyid`, or all keys when there is no keyid. Call it after a key was revoked at its source: from then on this
   * store uses no key that the source gave before the call, neither from a look-up under way nor while the source fails. The next look-up
   * asks the source again, without a cool-down. Other processes have stores of their own. Throws an OptionError for what is no keyid.
   */
  forget(keyid?: string): void;
}

/** Throws an OptionError: a call that forgets nothing must not look like a success. */
export function assertForgettable(owner: OptionOwner, keyid: unknown): void {
  if (keyid === undefined || typeof keyid === "string") return;
  throw optionError(owner, "keyid", "a keyid, or undefined for all keys", keyid);
}

/** A key as configured: what importVerificationKey takes, or what it returned. */
export type ConfiguredKey = PublicKeyInput | VerificationKey;

/** A record or Map is vetted once, when the middleware is built. */
export type Keys =
  | Readonly<Record<string, ConfiguredKey>>
  | ReadonlyMap<string, ConfiguredKey>
  | KeyLookup
  | KeyStore;

export interface ReadKeys {
  /** Empty with a store. */
  readonly known: ReadonlyMap<string, VerificationKey>;
  /** Undefined where keys are configured. */
  readonly store: AskedKeyStore | undefined;
}

export interface AskedKeyStore {
  readonly get: KeyLookup;
  readonly engine: string;
}

/** Throws an OptionError that names the keyid of a bad key. */
export function readKeys(keys: unknown, owner: OptionOwner, name: string): ReadKeys {
  if (isLookup(keys)) return { known: none, store: { get: keys, engine: otherEngine } };
  if (typeof keys !== "object" || keys === null || Array.isArray(keys)) {
    const expected = "a record or Map of keyid to public key, a function, or a KeyStore";
    throw optionError(owner, name, expected, keys);
  }
  if (!(keys instanceof Map) && hasMethods<KeyStore>(keys, "get")) {
    const { engine = otherEngine } = keys;
    if (typeof engine !== "string") throw optionError(owner, `${name}.engine`, "a word for traces", engine);
    return { known: none, store: { get: (keyid) => keys.get(keyid), engine } };
  }
  if ("kty" in keys || ("keys" in keys && Array.isArray(keys.keys))) {
    const what = 'is a JWK or JWK Set itself; write { "<keyid>": <the JWK or JWK Set> }';
    throw new OptionError(owner, { option: name, what });
  }
  const entries: [string, ConfiguredKey][] = [...(keys instanceof Map ? keys : Object.entries(keys))];
  if (entries.length === 0) throw optionError(owner, name, "at least one public key", keys);
  const known = new Map(entries.map(([keyid, key]) => [keyid, vet(key, { keyid, owner, name })]));
  return { known, store: undefined };
}

const none: ReadonlyMap<string, VerificationKey> = new Map();
const otherEngine = "other";

/** Throws an OptionError for a key whose algorithm is not accepted: it could verify nothing. */
export function assertTaken(
  owner: OptionOwner,
  { known }: ReadKeys,
  algorithms: readonly SignatureAlgorithm[],
): void {
  const useless = [...known.values()].find(({ alg }) => !algorithms.includes(alg));
  if (useless === undefined) return;
  const what = `, keyid ${JSON.stringify(useless.keyid)}: is a key of ${useless.alg}, which option algorithms does not take`;
  throw new OptionError(owner, { option: "keys", what });
}

/** Imports a key, or checks that an imported one stands under its own keyid. Throws an OptionError. */
export function vet(
  key: ConfiguredKey,
  { keyid, owner, name }: { readonly keyid: string; readonly owner: OptionOwner; readonly name: string },
): VerificationKey {
  if (isVerificationKey(key)) {
    if (key.keyid === keyid) return key;
    throw new OptionError(owner, { option: name, what: "lists a key under another keyid than its own" });
  }
  try {
    return importVerificationKey(keyid, key);
  } catch (cause) {
    const fault = cause instanceof Error ? cause.message : "not a key";
    throw new OptionError(owner, { option: name, what: `, keyid ${JSON.stringify(keyid)}: ${fault}`, cause });
  }
}

export function isLookup(keys: unknown): keys is KeyLookup {
  return typeof keys === "function";
}
