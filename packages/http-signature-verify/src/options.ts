import {
  assertFunction,
  assertKnownOptions,
  booleanOption,
  integerOption,
  optionError,
} from "@countersign/guard";
import {
  defaultComponents,
  derivedComponents,
  type SignatureProfile,
} from "@countersign/http-message-signatures";
import { resolveLimitBytes } from "@countersign/raw-body";
import { resolveKeys, type KeyLookup, type Keys } from "./key-store.ts";
import type { NonceStore } from "./nonce-store.ts";

/** Options of httpSignatureVerify. */
export interface HttpSignatureVerifyOptions {
  /** The public keys by keyid: a record, a Map, a function, or a KeyStore. */
  readonly keys: Keys;
  /** Where nonces are remembered. */
  readonly nonces: NonceStore;
  /** Components that a signature has to cover. Default `@method`, `@path`, `content-type`, `content-digest`. */
  readonly requiredComponents?: readonly string[] | undefined;
  /** Signature algorithms that are taken. Default and at present only `ed25519`. */
  readonly algorithms?: readonly "ed25519"[] | undefined;
  /** Largest `expires - created`, in seconds. Default 60. */
  readonly windowSeconds?: number | undefined;
  /** How far `created` may lie ahead of the clock, in seconds. Default 30. */
  readonly clockSkewSeconds?: number | undefined;
  /** The path prefix that a proxy took off the signed path, for example `/payments`. Default none. */
  readonly pathPrefix?: string | undefined;
  /** Scheme and authority that callers see, for `@scheme`, `@authority`, `@target-uri`. Default socket and Host field. */
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
    profile: resolveProfile(options),
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

function resolveProfile(options: HttpSignatureVerifyOptions): SignatureProfile {
  const { requiredComponents = defaultComponents, algorithms = ["ed25519"] } = options;
  if (!Array.isArray(requiredComponents) || requiredComponents.length === 0) {
    throw optionError(factory, "requiredComponents", "a list of at least one component", requiredComponents);
  }
  for (const name of requiredComponents) assertComponentName(name);
  if (!Array.isArray(algorithms) || algorithms.length === 0 || algorithms.some((alg) => alg !== "ed25519")) {
    throw optionError(factory, "algorithms", '["ed25519"]', algorithms);
  }
  return {
    requiredComponents: [...requiredComponents],
    algorithms: [...algorithms],
    windowSeconds: integerOption(factory, "windowSeconds", options.windowSeconds, {
      min: 1,
      max: 3600,
      fallback: 60,
    }),
    clockSkewSeconds: integerOption(factory, "clockSkewSeconds", options.clockSkewSeconds, {
      min: 0,
      max: 300,
      fallback: 30,
    }),
  };
}

function assertComponentName(name: unknown): void {
  const sound =
    typeof name === "string" &&
    (name.startsWith("@")
      ? derivedComponents.some((derived) => derived === name)
      : /^[!#$%&'*+\-.^_`|~0-9a-z]+$/.test(name));
  if (!sound) {
    throw optionError(
      factory,
      "requiredComponents",
      `lower-case field names or ${derivedComponents.join(", ")}`,
      name,
    );
  }
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
