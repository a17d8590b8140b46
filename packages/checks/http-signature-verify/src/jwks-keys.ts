import { OptionError, withDeadline } from "@countersign/core";
import { option, optionError, type OptionTable, readOptions } from "@countersign/core/door";
import { importKeys, type KeyValidity } from "@countersign/http-message-signatures";
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

/** What fetches: the global fetch, or one with certificates or proxies of its own. */
export type Fetch = (url: URL, init: RequestInit) => Promise<Response>;

/** Bounds of {@link fetchJwkSet}. */
export interface JwksBounds {
  readonly fetch: Fetch;
  readonly timeoutMs: number;
  readonly maxBytes: number;
  /** Ends the fetch. */
  readonly signal: AbortSignal;
}

/** A document as it was received; nothing of it is checked yet. */
export interface FetchedJwkSet {
  readonly document: unknown;
  /** For how long the answer may be used (RFC 9111), in seconds; undefined when it says nothing of it. */
  readonly maxAgeSeconds: number | undefined;
}

const maxRedirects = 3;
// As registered (RFC 7517 section 8.5), as most servers send it, and as profiles of RFC 9421 name it: all are JSON.
const jsonType = /^application\/(?:[a-z0-9!#$&^_.-]+\+)?json$/;
const accept = "application/jwk-set+json, application/json";

/**
 * Fetches a JWK Set. Rejects for any answer but 200 with a JSON media type, a redirect to another origin, more than `maxBytes`, no
 * end within `timeoutMs`. Errors show nothing of the answer.
 */
export async function fetchJwkSet(url: URL, bounds: JwksBounds): Promise<FetchedJwkSet> {
  const { signal, timeoutMs } = bounds;
  const controller = new AbortController();
  const abort = (): void => controller.abort();
  signal.addEventListener("abort", abort, { once: true });
  const late = (): Error => {
    abort();
    return new Error(`the key set did not come within ${timeoutMs} ms`);
  };
  try {
    return await withDeadline(fetchOnce(url, { ...bounds, signal: controller.signal }), timeoutMs, late);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}

async function fetchOnce(url: URL, bounds: JwksBounds): Promise<FetchedJwkSet> {
  const response = await followRedirects(url, bounds);
  try {
    assertJson(response);
    const document: unknown = parse(await readBytes(response, bounds.maxBytes));
    return { document, maxAgeSeconds: maxAge(response.headers) };
  } catch (error) {
    // The connection is not to be held by what nobody reads.
    await response.body?.cancel().catch(() => {});
    throw error;
  }
}

async function followRedirects(url: URL, { fetch, signal }: JwksBounds): Promise<Response> {
  let target = url;
  for (let hop = 0; hop <= maxRedirects; hop += 1) {
    // oxlint-disable-next-line no-await-in-loop -- each answer says where the next one is
    const response = await fetch(target, { redirect: "manual", signal, headers: { accept } });
    if (![301, 302, 303, 307, 308].includes(response.status)) return response;
    // oxlint-disable-next-line no-await-in-loop -- before the next one is asked for
    await response.body?.cancel();
    target = redirected(target, response.headers.get("location"));
  }
  throw new Error(`the key set was redirected more than ${maxRedirects} times`);
}

// Who controls another origin would be trusted with every payout; and http is one.
function redirected(from: URL, location: string | null): URL {
  const to =
    location !== null && URL.canParse(location, from.href) ? new URL(location, from.href) : undefined;
  if (to?.origin === from.origin && to.username === "" && to.password === "") return to;
  throw new Error("the key set was redirected to another origin");
}

function assertJson({ status, headers }: Response): void {
  if (status !== 200) throw new Error(`the key set was answered with status ${status}`);
  const [type = ""] = (headers.get("content-type") ?? "").split(";", 1);
  if (!jsonType.test(type.trim().toLowerCase()))
    throw new Error("the key set has another media type than JSON");
}

async function readBytes({ body, headers }: Response, maxBytes: number): Promise<Buffer> {
  const tooLarge = (): Error => new Error(`the key set has more than ${maxBytes} bytes`);
  if (Number(headers.get("content-length") ?? 0) > maxBytes) throw tooLarge();
  const chunks: Uint8Array[] = [];
  let length = 0;
  const reader: ReadableStreamDefaultReader<Uint8Array> | undefined = body?.getReader();
  if (reader === undefined) throw new Error("the key set has no body");
  try {
    for (;;) {
      // oxlint-disable-next-line no-await-in-loop -- a stream
      const { done, value } = await reader.read();
      if (done) return Buffer.concat(chunks);
      length += value.length;
      if (length > maxBytes) throw tooLarge();
      chunks.push(value);
    }
  } finally {
    reader.releaseLock();
  }
}

function parse(bytes: Buffer): unknown {
  let document: unknown;
  try {
    document = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    // The parser's message quotes the text.
    throw new Error("the key set is no JSON in UTF-8");
  }
  if (isJwkSet(document)) return document;
  throw new Error("the document is no JWK Set: an object with a list keys");
}

function isJwkSet(document: unknown): boolean {
  if (typeof document !== "object" || document === null || "kty" in document) return false;
  return "keys" in document && Array.isArray(document.keys);
}

// RFC 9111 section 5.2.2. `Expires` is not read: it needs both clocks to agree.
function maxAge(headers: Headers): number | undefined {
  const directives = (headers.get("cache-control") ?? "")
    .toLowerCase()
    .split(",")
    .map((one) => one.trim());
  if (directives.includes("no-store") || directives.includes("no-cache")) return 0;
  const [, seconds] =
    directives.map((one) => /^max-age="?(\d{1,10})"?$/.exec(one)).find((found) => found !== null) ?? [];
  if (seconds === undefined) return undefined;
  const age = Number(headers.get("age") ?? 0);
  return Math.max(0, Number(seconds) - (age > 0 ? age : 0));
}
