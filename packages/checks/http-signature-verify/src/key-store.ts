import { channel, type Channel } from "node:diagnostics_channel";
import {
  keyUseChannelName,
  option,
  OptionError,
  optionError,
  readOptions,
  systemClock,
  type KeyUseEvent,
  type OptionOwner,
  type OptionTable,
} from "@countersign/core";
import {
  importVerificationKey,
  isVerificationKey,
  type PublicKeyInput,
  type ReceivedSignature,
  type SignatureAlgorithm,
  type VerificationKey,
} from "@countersign/http-message-signatures";
import { LRUCache } from "lru-cache";

/** Finds the key of a keyid; undefined or null when it is unknown. A throw or a rejection answers 503. */
export type KeyLookup = (
  keyid: string,
) => VerificationKey | null | undefined | Promise<VerificationKey | null | undefined>;

/** Where keys live. The keyid is text from the wire: never a path, a URL, or a key of a plain object. */
export interface KeyStore {
  get: KeyLookup;
  /** What it asks, one word for traces, such as `postgresql`. Default `other`. */
  readonly engine?: string | undefined;
}

/** A key as configured: what importVerificationKey takes, or what it returned. */
export type ConfiguredKey = PublicKeyInput | VerificationKey;

/** What the option `keys` takes. A record and a Map are read and vetted once, when the middleware is built. */
export type Keys =
  | Readonly<Record<string, ConfiguredKey>>
  | ReadonlyMap<string, ConfiguredKey>
  | KeyLookup
  | KeyStore;

/** The option `keys`, read. */
export interface ReadKeys {
  readonly lookup: KeyLookup;
  /** Those that are configured; none where a function or a KeyStore finds them. */
  readonly known: readonly VerificationKey[];
  /** What a look-up asks; undefined where keys are configured, and nothing is asked. */
  readonly engine: string | undefined;
}

/** Turns the option `keys` into one look-up. Throws an OptionError that names the keyid of a bad key. */
export function readKeys(keys: unknown, owner: OptionOwner, name: string): ReadKeys {
  if (isLookup(keys)) return { lookup: keys, known: [], engine: otherEngine };
  if (typeof keys !== "object" || keys === null || Array.isArray(keys)) {
    const expected = "a record or Map of keyid to public key, a function, or a KeyStore";
    throw optionError(owner, name, expected, keys);
  }
  if (!(keys instanceof Map) && isKeyStore(keys)) {
    const { engine = otherEngine } = keys;
    if (typeof engine !== "string") throw optionError(owner, `${name}.engine`, "a word for traces", engine);
    return { lookup: (keyid) => keys.get(keyid), known: [], engine };
  }
  if ("kty" in keys || ("keys" in keys && Array.isArray(keys.keys))) {
    const what = 'is a JWK or JWK Set itself; write { "<keyid>": <the JWK or JWK Set> }';
    throw new OptionError(owner, { option: name, what });
  }
  const entries: [string, ConfiguredKey][] = [...(keys instanceof Map ? keys : Object.entries(keys))];
  if (entries.length === 0) throw optionError(owner, name, "at least one public key", keys);
  const known = new Map(entries.map(([keyid, key]) => [keyid, vet(key, { keyid, owner, name })]));
  return { lookup: (keyid) => known.get(keyid), known: [...known.values()], engine: undefined };
}

const otherEngine = "other";

/** Throws an OptionError for a key that no signature can be verified by: its algorithm is not one of those that are taken. */
export function assertTaken(
  owner: OptionOwner,
  { known }: ReadKeys,
  algorithms: readonly SignatureAlgorithm[],
): void {
  const useless = known.find(({ alg }) => !algorithms.includes(alg));
  if (useless === undefined) return;
  const what = `, keyid ${JSON.stringify(useless.keyid)}: is a key of ${useless.alg}, which option algorithms does not take`;
  throw new OptionError(owner, { option: "keys", what });
}

/** Imports a configured key, or checks that an imported one stands under its own keyid. Throws an OptionError. */
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

/** Whether a value is a look-up; what it returns shows when it is called. */
export function isLookup(keys: unknown): keys is KeyLookup {
  return typeof keys === "function";
}

/** Whether an object is a KeyStore. */
export function isKeyStore(keys: object): keys is KeyStore {
  return "get" in keys && typeof keys.get === "function";
}

const keyUseChannel: Channel = channel(keyUseChannelName);

/** Tells that a key has verified a signature, whatever becomes of the request. Costs nothing when nobody listens. */
export function publishKeyUse({ keyid, created }: ReceivedSignature, key: VerificationKey | undefined): void {
  if (!keyUseChannel.hasSubscribers) return;
  const event: KeyUseEvent = { keyid, subject: key?.subject, created, notAfter: key?.notAfter };
  keyUseChannel.publish(event);
}

/** Options of {@link keyUse}. */
export interface KeyUseOptions {
  /** Keys remembered at most; those that were idle longest are forgotten. Default 1,000. */
  readonly max?: number | undefined;
  /** Milliseconds since 1970; default Date.now. */
  readonly clock?: (() => number) | undefined;
}

export const table: OptionTable<KeyUseOptions> = {
  max: option.integer({ min: 1, max: 100_000, fallback: 1000 }),
  clock: option.clock(systemClock, "Date.now"),
};

/** When a key was used in this process. */
export interface KeyUse {
  readonly keyid: string;
  readonly subject: string | undefined;
  /** Signatures that it has verified. */
  readonly count: number;
  /** Unix seconds. */
  readonly firstUsed: number;
  /** Unix seconds. */
  readonly lastUsed: number;
}

/** Which keys are in use, and which are idle. */
export interface KeyUseTable {
  /** The key that was used last stands first. A key that was never used is not there. */
  entries(): readonly KeyUse[];
  /** Stops counting. */
  close(): void;
}

/** Counts the uses of keys in this process from now on, so that an operator sees when an old key is idle. */
export function keyUse(options: KeyUseOptions = {}): KeyUseTable {
  const { max, clock } = readOptions("keyUse", table, options);
  const uses = new LRUCache<string, KeyUse>({ max });
  const count = (event: unknown): void => {
    if (!isKeyUseEvent(event)) return;
    const { keyid, subject } = event;
    const now = Math.floor(clock() / 1000);
    const before = uses.get(keyid) ?? { firstUsed: now, count: 0 };
    uses.set(keyid, { keyid, subject, count: before.count + 1, firstUsed: before.firstUsed, lastUsed: now });
  };
  keyUseChannel.subscribe(count);
  return {
    entries: () => [...uses.values()],
    close() {
      keyUseChannel.unsubscribe(count);
    },
  };
}

// A channel is open to every module of the process.
function isKeyUseEvent(event: unknown): event is KeyUseEvent {
  return typeof event === "object" && event !== null && "keyid" in event && typeof event.keyid === "string";
}
