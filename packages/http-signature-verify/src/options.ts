import {
  assertFunction,
  assertKnownOptions,
  booleanOption,
  integerOption,
  optionError,
} from "@countersign/guard";
import type { SignatureProfile } from "@countersign/http-message-signatures";
import { resolveLimitBytes } from "@countersign/raw-body";
import { resolveKeys, type KeyLookup, type Keys } from "./key-store.ts";
import type { NonceStore } from "./nonce-store.ts";
import { resolveProfile, type ProfileOptions } from "./profile.ts";

/** Options of httpSignatureVerify. */
export interface HttpSignatureVerifyOptions extends ProfileOptions {
  /** The public keys by keyid: a record, a Map, a function, or a KeyStore. */
  readonly keys: Keys;
  /** Where nonces are remembered. */
  readonly nonces: NonceStore;
  /** The path prefix that a proxy took off the signed path, for example `/payments`. Default none. */
  readonly pathPrefix?: string | undefined;
  /** Scheme and authority that callers see, for `@scheme`, `@authority`, `@target-uri`. Default socket and `:authority` or Host. */
  readonly origin?: string | undefined;
  /** Let a query pass that no covered component signs. Default false. */
  readonly allowUnsignedQuery?: boolean | undefined;
  /** Largest body, in bytes or like `"100kb"`; used when no earlier middleware captured it. Default 100 kB. */
  readonly limit?: number | string | undefined;
  /** How long a key store or nonce store may take, in milliseconds, before the answer is 503. Default 2,000. */
  readonly storeTimeoutMs?: number | undefined;
  /** The time in milliseconds since 1970, like Date.now. */
  readonly clock?: (() => number) | undefined;
}

/** The options with defaults, checked. */
export interface ResolvedOptions {
  readonly profile: SignatureProfile;
  readonly lookupKey: KeyLookup;
  readonly nonces: NonceStore;
  readonly pathPrefix: string;
  readonly origin: { readonly scheme: "http" | "https"; readonly authority: string } | undefined;
  readonly allowUnsignedQuery: boolean;
  readonly limitBytes: number;
  readonly storeTimeoutMs: number;
  readonly clock: () => number;
}

const factory = "httpSignatureVerify";
const known: readonly (keyof HttpSignatureVerifyOptions)[] = [
  "keys",
  "nonces",
  "requiredComponents",
  "tag",
  "algorithms",
  "windowSeconds",
  "clockSkewSeconds",
  "pathPrefix",
  "origin",
  "allowUnsignedQuery",
  "limit",
  "storeTimeoutMs",
  "clock",
];

/** Checks the options and fills in defaults. Throws a TypeError that names the option. */
export function resolveOptions(options: HttpSignatureVerifyOptions): ResolvedOptions {
  assertKnownOptions(factory, options, known);
  const { nonces, clock = Date.now } = options;
  if (typeof nonces?.claim !== "function") {
    throw optionError(factory, "nonces", "a NonceStore, for example memoryNonceStore()", nonces);
  }
  assertFunction(factory, "clock", clock);
  return {
    profile: resolveProfile(factory, options, options.origin),
    lookupKey: resolveKeys(factory, options.keys),
    nonces,
    pathPrefix: resolvePathPrefix(options.pathPrefix),
    origin: resolveOrigin(options.origin),
    allowUnsignedQuery: booleanOption(factory, "allowUnsignedQuery", options.allowUnsignedQuery, false),
    limitBytes: resolveLimitBytes(factory, options.limit),
    storeTimeoutMs: integerOption(factory, "storeTimeoutMs", options.storeTimeoutMs, {
      min: 1,
      max: 60_000,
      fallback: 2000,
    }),
    clock,
  };
}

function resolvePathPrefix(pathPrefix = ""): string {
  const sound =
    typeof pathPrefix === "string" &&
    /^(?:\/[A-Za-z0-9\-._~!$&'()*+,;=:@%]+)*$/.test(pathPrefix) &&
    !/\/\.{1,2}(?:\/|$)|%2e/i.test(pathPrefix);
  if (!sound) {
    throw optionError(
      factory,
      "pathPrefix",
      'a path such as "/payments", without a slash at its end',
      pathPrefix,
    );
  }
  return pathPrefix;
}

function resolveOrigin(origin: string | undefined): ResolvedOptions["origin"] {
  if (origin === undefined) return undefined;
  const url = typeof origin === "string" && URL.canParse(origin) ? new URL(origin) : undefined;
  if (url === undefined || url.origin !== origin || !/^https?:$/.test(url.protocol)) {
    throw optionError(factory, "origin", 'an origin such as "https://pay.example"', origin);
  }
  return { scheme: url.protocol === "https:" ? "https" : "http", authority: url.host };
}
