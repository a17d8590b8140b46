import { OptionError, type NonceStore } from "@countersign/core";
import {
  hasMethods,
  holderOf,
  limitRule,
  option,
  optionError,
  readOptions,
  systemClock,
  type BuiltFact,
  type OptionOwner,
  type OptionTable,
  type ReadOptions,
} from "@countersign/core/internal";
import {
  jwkThumbprint,
  type VerificationKey,
  type VerifyOptions,
} from "@countersign/http-message-signatures";
import { loadEngine } from "@countersign/http-message-signatures/internal";
import { ImportedKeys } from "./imported-keys.ts";
import { assertTaken, readKeys, type AskedKeyStore, type Keys } from "./key-store.ts";
import { policyReader, type PolicyLookup, type PolicyReader } from "./policy.ts";
import { assertPolicy, profileRules, textRule, type ProfileOptions } from "./profile.ts";

type VerificationEngine = NonNullable<VerifyOptions["engine"]>;

export interface HttpSignatureVerifyOptions extends ProfileOptions {
  /** The public keys by keyid: a record, a Map, a function, or a KeyStore. */
  readonly keys: Keys;
  /**
   * Returns the policy of a partner by the signature's keyid, tag and label, none of which is verified yet. Its members replace the options
   * of a signature beside it. undefined is 401, a throw 503. Default none: the options are the policy of all.
   */
  readonly policy?: PolicyLookup | undefined;
  /** Remembers nonces. Required unless `requiredParameters` leaves `nonce` out; a nonce that is there is always claimed. */
  readonly nonces?: NonceStore | undefined;
  /** The prefix that a proxy removed from the signed path, such as `/payments`. Default none. */
  readonly pathPrefix?: string | undefined;
  /** Origin that callers see, for `@scheme`, `@authority`, `@target-uri`. Default by socket or trusted proxy, and `:authority` or Host. */
  readonly origin?: string | undefined;
  /** The name of this server's environment, such as `production`: a key whose scope names another one is refused. Default none. */
  readonly environment?: string | undefined;
  /** Let a query pass that no covered component signs. Default false. */
  readonly allowUnsignedQuery?: boolean | undefined;
  /** Let a body pass that no covered Content-Digest signs. Default false. */
  readonly allowUnsignedBody?: boolean | undefined;
  /** Largest body, in bytes or like `"100kb"`; used when no earlier middleware captured it. Default 100 kB. */
  readonly limit?: number | string | undefined;
  /** Verifies Ed25519: `native` (node:crypto), `sodium` (optional sodium-native) or `noble` (JavaScript), all alike. Default `native`. */
  readonly engine?: VerificationEngine | undefined;
  /** Verify on libuv's thread pool, not on the event loop. Default true for `native`; the others have no pool. */
  readonly threadPool?: boolean | undefined;
  /** How long a key store or nonce store may take, in milliseconds, before the answer is 503. Default 2,000. */
  readonly storeTimeoutMs?: number | undefined;
  /** The time in milliseconds since 1970, like Date.now. */
  readonly clock?: (() => number) | undefined;
}

interface CallersOrigin {
  readonly scheme: "http" | "https";
  readonly authority: string;
}

/** The name in messages unless an endpoint gives its own. */
export const factoryName = "httpSignatureVerify";

export const table = {
  keys: option.shown(option.own(readKeys), ({ known }) => Array.from(known.values(), showKey)),
  nonces: option.optional(option.own(readNonceStore), "required where a nonce is"),
  policy: option.optional(option.call<PolicyLookup>()),
  ...profileRules,
  pathPrefix: textRule('a path such as "/payments", without a slash at its end', isPathPrefix, ""),
  origin: option.optional(option.own(readOrigin), "socket or trusted proxy, and :authority or Host"),
  environment: option.optional(textRule('a name such as "production"', (text) => text !== "")),
  allowUnsignedQuery: option.shown(option.boolean(false)),
  allowUnsignedBody: option.shown(option.boolean(false)),
  limit: limitRule(),
  engine: option.own(readEngine, '"native"'),
  threadPool: option.optional(option.boolean(true), "true for native"),
  storeTimeoutMs: option.integer({ min: 1, max: 60_000, fallback: 2000 }),
  clock: option.call(systemClock, "Date.now"),
} satisfies OptionTable<HttpSignatureVerifyOptions, unknown>;

export interface ResolvedVerifyOptions extends Omit<ReadOptions<typeof table>, "keys" | "threadPool"> {
  /** Empty with `keyStore`. */
  readonly knownKeys: ReadonlyMap<string, VerificationKey>;
  readonly keyStore: AskedKeyStore | undefined;
  /** Keys that `keyStore` gave in another form. */
  readonly imported: ImportedKeys;
  /** Undefined without `policy`. */
  readonly policies: PolicyReader<ResolvedVerifyOptions> | undefined;
  readonly threadPool: boolean;
}

/** Throws an OptionError. */
export function resolveOptions(
  options: HttpSignatureVerifyOptions,
  owner: OptionOwner,
): ResolvedVerifyOptions {
  const resolved = readOptions(owner, table, options);
  assertPolicy(owner, resolved);
  const { keys, algorithms, policy } = resolved;
  // With a policy for each partner, each has algorithms of its own.
  if (policy === undefined) assertTaken(owner, keys, algorithms);
  const { engine, threadPool = engine === "native" } = resolved;
  if (threadPool && engine !== "native") {
    throw optionError(owner, "threadPool", `false with the engine ${engine}`, true);
  }
  const own = { ...resolved, knownKeys: keys.known, keyStore: keys.store, threadPool };
  const base: ResolvedVerifyOptions = { ...own, imported: new ImportedKeys(), policies: undefined };
  if (policy === undefined) return base;
  return { ...base, policies: policyReader(base, options, holderOf(owner, "policy")) };
}

/** Checks options and builds nothing. Throws an OptionError in the name of `owner`. */
export function assertVerifyOptions(options: HttpSignatureVerifyOptions, owner: OptionOwner): void {
  resolveOptions(options, owner);
}

// Shows only what is public. A secret's thumbprint would let others test guesses.
function showKey(key: VerificationKey): BuiltFact {
  return {
    keyid: key.keyid,
    thumbprint: key.publicKey.type === "public" ? jwkThumbprint(key) : null,
    notBefore: key.notBefore ?? null,
    notAfter: key.notAfter ?? null,
    revokedAt: key.revokedAt ?? null,
  };
}

function readNonceStore(nonces: unknown, owner: OptionOwner, name: string): NonceStore {
  if (!hasMethods<NonceStore>(nonces, "claim")) {
    throw optionError(owner, name, "a NonceStore, for example memoryNonceStore()", nonces);
  }
  // Both are made together, and both have a claim(): mixed up, every request would be 503.
  if ("heartbeat" in nonces) {
    throw optionError(owner, name, "a NonceStore, not an IdempotencyStore", nonces);
  }
  return nonces;
}

const engineRule = option.oneOf<VerificationEngine>(["native", "noble", "sodium"], "native");

function readEngine(engine: unknown, owner: OptionOwner, name: string): VerificationEngine {
  const read = engineRule.read(engine, owner, name);
  try {
    loadEngine(read);
  } catch (cause) {
    const what = "needs the package sodium-native, which cannot be loaded here: npm install sodium-native";
    throw new OptionError(owner, { option: name, what, cause });
  }
  return read;
}

function isPathPrefix(text: string): boolean {
  return /^(?:\/[A-Za-z0-9\-._~!$&'()*+,;=:@%]+)*$/.test(text) && !/\/\.{1,2}(?:\/|$)|%2e/i.test(text);
}

function readOrigin(origin: unknown, owner: OptionOwner, name: string): CallersOrigin {
  const url = typeof origin === "string" && URL.canParse(origin) ? new URL(origin) : undefined;
  if (url === undefined || url.origin !== origin || !/^https?:$/.test(url.protocol)) {
    throw optionError(owner, name, 'an origin such as "https://pay.example"', origin);
  }
  return { scheme: url.protocol === "https:" ? "https" : "http", authority: url.host };
}
