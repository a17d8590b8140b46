import { type NonceStore } from "@countersign/core";
import {
  inTime,
  option,
  optionError,
  splitOptions,
  systemClock,
  type OptionOwner,
  type OptionTable,
  type ReadOptions,
} from "@countersign/core/internal";
import { isVerificationKey } from "@countersign/http-message-signatures/internal";
import { importVerificationKey, type VerificationKey } from "@countersign/http-message-signatures";
import {
  assertVerifyOptions,
  readKeys,
  type HttpSignatureVerifyOptions,
  type Keys,
  type KeyStore,
  type LiveKeyStore,
} from "@countersign/http-signature-verify";

/** Options of {@link explainSignature}: the policy options of httpSignatureVerify, and these. */
export interface ExplainSignatureOptions extends Omit<
  HttpSignatureVerifyOptions,
  "engine" | "keys" | "limit" | "nonces" | "storeTimeoutMs" | "threadPool"
> {
  /**
   * The option of the check. A signature is tried under all keys of a record, a Map or a store that lists its `keys()`, as jwksKeys does, at
   * most 100; a function or another store is asked for the keyids of the request alone.
   */
  readonly keys: Keys;
  /** The signer's own signature base, compared with the expected one if nothing fits. Default none. */
  readonly signerBase?: string | undefined;
  /** Path prefixes to try before `@path`. Default `/api`, `/api/v1`, `/v1`, `/v2`, `/payments`, `/payout`. */
  readonly pathPrefixes?: readonly string[] | undefined;
  /** Most signatures to verify. Default 2,000. */
  readonly maxAttempts?: number | undefined;
}

/** Rejects if a store gives no answer. */
type FindKeys = (keyids: readonly string[]) => Promise<FoundKeys>;

export type KnownKeys = ReadonlyMap<string, VerificationKey>;

interface FoundKeys {
  readonly known: KnownKeys;
  /** What a store gave that cannot be used, by keyid: the check says what is wrong with it. */
  readonly unusable: ReadonlyMap<string, ConfiguredKey>;
}

type ConfiguredKey = NonNullable<Awaited<ReturnType<KeyStore["get"]>>>;

const maxBaseLength = 65_536;

export const table = {
  keys: option.own(readKnownKeys),
  signerBase: option.optional(option.own(readBase)),
  pathPrefixes: option.own(readPrefixes, '`["/api", "/api/v1", "/v1", "/v2", "/payments", "/payout"]`'),
  maxAttempts: option.integer({ min: 0, max: 100_000, fallback: 2000 }),
} satisfies OptionTable<
  Pick<ExplainSignatureOptions, "keys" | "maxAttempts" | "pathPrefixes" | "signerBase">,
  unknown
>;

export type OwnOptions = ReadOptions<typeof table>;

// Tells subscribers who time stores that no request has waited.
const engine = "explain";
const anyNonce: NonceStore = { engine, claim: () => "fresh" };

/** Splits the options into the explanation's own and the check's. Throws an OptionError. */
export function readExplainOptions(
  owner: OptionOwner,
  options: ExplainSignatureOptions,
): {
  readonly own: OwnOptions;
  /** The check with these keys; without keys its store counts as down. */
  readonly check: (keys: FoundKeys | undefined) => HttpSignatureVerifyOptions;
} {
  const [own, rest] = splitOptions(owner, table, options);
  // An explanation claims no nonce: the request that it explains would be a replay.
  const check = (keys: FoundKeys | undefined): HttpSignatureVerifyOptions => ({
    clock: systemClock,
    ...rest,
    keys: { engine, get: (keyid) => keyOf(keys ?? noAnswer(), keyid) },
    nonces: anyNonce,
  });
  assertVerifyOptions(check(undefined), owner);
  return { own, check };
}

function keyOf({ known, unusable }: FoundKeys, keyid: string): ConfiguredKey | undefined {
  return known.get(keyid) ?? unusable.get(keyid);
}

function noAnswer(): never {
  throw new Error("the key store gave no answer");
}

const storeTimeoutMs = 5_000;
const late = (): Error => new Error(`the key store gave no answer within ${storeTimeoutMs} ms`);

function readKnownKeys(keys: unknown, owner: OptionOwner, name: string): FindKeys {
  const { known, store } = readKeys(keys, owner, name);
  if (store === undefined) return async () => allUsable(known);
  return isListing(keys)
    ? async () => allUsable(new Map(keys.keys().map((key) => [key.keyid, key])))
    : asked(store.get);
}

function allUsable(known: KnownKeys): FoundKeys {
  return { known, unusable: new Map() };
}

function isListing(keys: unknown): keys is LiveKeyStore {
  return typeof keys === "object" && typeof Object(keys).keys === "function";
}

function asked(lookup: KeyStore["get"]): FindKeys {
  const find = async (keyid: string) => ({
    keyid,
    given: await inTime(lookup(keyid), storeTimeoutMs, late),
  });
  return async (keyids) => {
    const known = new Map<string, VerificationKey>();
    const unusable = new Map<string, ConfiguredKey>();
    for (const { keyid, given } of await Promise.all(keyids.map(find))) {
      if (given === undefined || given === null) continue;
      const key = usableKey(keyid, given);
      if (key === undefined) unusable.set(keyid, given);
      else known.set(keyid, key);
    }
    return { known, unusable };
  };
}

function usableKey(keyid: string, given: ConfiguredKey): VerificationKey | undefined {
  if (isVerificationKey(given)) return given;
  try {
    return importVerificationKey(keyid, given);
  } catch {
    return undefined;
  }
}

function readBase(base: unknown, ownerOfBase: OptionOwner, name: string): string {
  if (typeof base === "string" && base.length <= maxBaseLength) return base;
  throw optionError(ownerOfBase, name, `a text of at most ${maxBaseLength} characters`, base);
}

const usualPrefixes = ["/api", "/api/v1", "/v1", "/v2", "/payments", "/payout"];

function readPrefixes(
  prefixes: unknown = usualPrefixes,
  ownerOfThem: OptionOwner,
  name: string,
): readonly string[] {
  if (Array.isArray(prefixes) && prefixes.length <= 20 && prefixes.every(isPrefix)) return [...prefixes];
  throw optionError(ownerOfThem, name, 'a list of at most 20 paths such as "/payments"', prefixes);
}

function isPrefix(prefix: unknown): prefix is string {
  return typeof prefix === "string" && /^\/[!-~]{0,200}$/.test(prefix);
}
