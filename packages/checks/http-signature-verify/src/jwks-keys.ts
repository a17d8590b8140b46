import { OptionError } from "@countersign/core";
import { option, optionError, readOptions, type OptionTable } from "@countersign/core/door";
import { importKeys, type KeyValidity } from "@countersign/http-message-signatures";
import { fetchJwkSet, type Fetch } from "./jwks-fetch.ts";
import { LiveKeys, type LiveKeyStore } from "./live-keys.ts";

/** Options of {@link jwksKeys}. */
export interface JwksKeysOptions {
  /** How long a set is used when its answer has no `max-age`, in seconds. Default 300. */
  readonly ttlSeconds?: number | undefined;
  /** A shorter `max-age` counts as this one, in seconds. Default 30. */
  readonly minTtlSeconds?: number | undefined;
  /** A longer `max-age` counts as this one, in seconds: a withdrawn key is accepted for as long. Default 3,600. */
  readonly maxTtlSeconds?: number | undefined;
  /** After a fetch, no request causes another one for as long, in seconds. Default 30. A keyid stays unknown for as long. */
  readonly cooldownSeconds?: number | undefined;
  /** How long the last good set is used beyond its time while no other can be had, in seconds. Default 3,600. */
  readonly staleIfErrorSeconds?: number | undefined;
  /** How long a fetch may take with its redirects and its body, in milliseconds. Default 5,000. */
  readonly timeoutMs?: number | undefined;
  /** Bytes of a document at most, uncompressed. Default 262,144. */
  readonly maxBytes?: number | undefined;
  /** Keys of a set at most. Default 100. */
  readonly maxKeys?: number | undefined;
  /** What a key's scope, subject and further validity are, by its keyid. Default none. */
  readonly validity?: ((keyid: string) => KeyValidity | undefined) | undefined;
  /** Take a URL of plain http on this machine. Default false. */
  readonly allowHttpOnLoopback?: boolean | undefined;
  /** Fetches; for certificates or proxies of one's own. Default the global fetch. */
  readonly fetch?: Fetch | undefined;
  /** A monotonic clock in milliseconds; default performance.now. */
  readonly now?: (() => number) | undefined;
}

export const table: OptionTable<JwksKeysOptions> = {
  ttlSeconds: option.integer({ min: 1, max: 86_400, fallback: 300 }),
  minTtlSeconds: option.integer({ min: 1, max: 86_400, fallback: 30 }),
  maxTtlSeconds: option.integer({ min: 1, max: 86_400, fallback: 3600 }),
  cooldownSeconds: option.integer({ min: 1, max: 3600, fallback: 30 }),
  staleIfErrorSeconds: option.integer({ min: 0, max: 604_800, fallback: 3600 }),
  timeoutMs: option.integer({ min: 1, max: 60_000, fallback: 5000 }),
  maxBytes: option.integer({ min: 1, max: 16_777_216, fallback: 262_144 }),
  maxKeys: option.integer({ min: 1, max: 10_000, fallback: 100 }),
  validity: option.call<(keyid: string) => KeyValidity | undefined>(() => undefined, "none"),
  allowHttpOnLoopback: option.boolean(false),
  fetch: option.call<Fetch>((url, init) => fetch(url, init), "fetch"),
  now: option.clock(() => performance.now(), "performance.now"),
};

const factoryName = "jwksKeys";
const refreshAhead = 0.8;

/**
 * The keys of a JWK Set (RFC 7517) at an https URL, in which `kid` is the keyid. The first look-up fetches it, and from then on a
 * timer does before its time is over. Unknown keyids cause at most one fetch in each cool-down, all together. A document that cannot be had, or of
 * which no key can be used, leaves the last good set in use for a bounded time, and is told on `countersign:notice`; a single bad key is
 * left out and told. An empty set withdraws all keys. Throws an OptionError on a bad URL or option.
 */
export function jwksKeys(url: string | URL, options: JwksKeysOptions = {}): LiveKeyStore {
  const read = readOptions(factoryName, table, options);
  const { minTtlSeconds, maxTtlSeconds, ttlSeconds, maxKeys, validity } = read;
  if (minTtlSeconds > maxTtlSeconds) {
    throw new OptionError(factoryName, { option: "minTtlSeconds", what: "must not exceed maxTtlSeconds" });
  }
  const address = readUrl(url, read.allowHttpOnLoopback);
  return new LiveKeys({
    guard: factoryName,
    async load(signal) {
      const { document, maxAgeSeconds } = await fetchJwkSet(address, { ...read, signal });
      const freshSeconds =
        maxAgeSeconds === undefined
          ? ttlSeconds
          : Math.min(Math.max(maxAgeSeconds, minTtlSeconds), maxTtlSeconds);
      const freshMs = 1000 * freshSeconds;
      return { ...importKeys(document, { maxKeys, validity }), freshMs, refreshMs: refreshAhead * freshMs };
    },
    cooldownMs: 1000 * read.cooldownSeconds,
    staleMs: 1000 * read.staleIfErrorSeconds,
    readsForUnknown: true,
    clock: read.now,
  });
}

const loopback = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/;

function readUrl(given: string | URL, allowHttpOnLoopback: boolean): URL {
  const text: unknown = given instanceof URL ? given.href : given;
  const url = typeof text === "string" && URL.canParse(text) ? new URL(text) : undefined;
  // It is shown nowhere: a query may be a secret.
  if (url === undefined) throw optionError(factoryName, "url", "an https URL", text);
  if (url.username !== "" || url.password !== "") {
    throw new OptionError(factoryName, { option: "url", what: "must hold no user name and no password" });
  }
  const isLocal = url.protocol === "http:" && loopback.test(url.hostname) && allowHttpOnLoopback;
  if (url.protocol === "https:" || isLocal) return url;
  const what = "must be an https URL; one of http is taken on loopback alone, with allowHttpOnLoopback: true";
  throw new OptionError(factoryName, { option: "url", what });
}
