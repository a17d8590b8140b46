import { OptionError, withDeadline } from "@countersign/core";
import { option, optionError, type OptionTable, readOptions } from "@countersign/core/internal";
import {
  importInSlices,
  liveKeys,
  liveKeysRules,
  type LiveKeysOptions,
  type LiveKeyStore,
} from "./live-keys.ts";

type Fetch = (url: URL, init: RequestInit) => Promise<Response>;

export interface JwksKeysOptions extends LiveKeysOptions {
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
  /** How long a fetch may take with its body, in milliseconds. Default 5,000. */
  readonly timeoutMs?: number | undefined;
  /** Take a URL of plain http on this machine. Default false. */
  readonly allowHttpOnLoopback?: boolean | undefined;
  /** For your own certificates, proxies or redirects. Default the global fetch, which follows no redirect. */
  readonly fetch?: Fetch | undefined;
}

export const table: OptionTable<JwksKeysOptions> = {
  ...liveKeysRules,
  ttlSeconds: option.integer({ min: 1, max: 86_400, fallback: 300 }),
  minTtlSeconds: option.integer({ min: 1, max: 86_400, fallback: 30 }),
  maxTtlSeconds: option.integer({ min: 1, max: 86_400, fallback: 3600 }),
  cooldownSeconds: option.integer({ min: 1, max: 3600, fallback: 30 }),
  staleIfErrorSeconds: option.integer({ min: 0, max: 604_800, fallback: 3600 }),
  timeoutMs: option.integer({ min: 1, max: 60_000, fallback: 5000 }),
  allowHttpOnLoopback: option.boolean(false),
  fetch: option.call<Fetch>((url, init) => fetch(url, init), "fetch"),
};

const factoryName = "jwksKeys";
const refreshAhead = 0.8;

/**
 * Keeps the keys of a JWK Set (RFC 7517) at an https URL; `kid` is the keyid. The first look-up fetches it, then a timer before it ends.
 * Unknown keyids together cause at most one fetch in each cool-down. Without a usable set the last good one stays for a bounded time, with
 * a notice on `countersign:notice`; a bad key is left out. An empty set withdraws all keys. Throws an OptionError.
 */
export function jwksKeys(url: string | URL, options: JwksKeysOptions = {}): LiveKeyStore {
  const read = readOptions(factoryName, table, options);
  const { minTtlSeconds, maxTtlSeconds, ttlSeconds, maxKeys, validity } = read;
  if (minTtlSeconds > maxTtlSeconds) {
    throw new OptionError(factoryName, { option: "minTtlSeconds", what: "must not exceed maxTtlSeconds" });
  }
  const address = readUrl(url, read.allowHttpOnLoopback);
  return liveKeys({
    guard: factoryName,
    async load(signal) {
      const { document, maxAgeSeconds } = await fetchJwkSet(address, { ...read, signal });
      const freshSeconds =
        maxAgeSeconds === undefined
          ? ttlSeconds
          : Math.min(Math.max(maxAgeSeconds, minTtlSeconds), maxTtlSeconds);
      const freshMs = 1000 * freshSeconds;
      const imported = await importInSlices(document, { maxKeys, validity });
      return { ...imported, freshMs, refreshMs: refreshAhead * freshMs };
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
  // Not shown: a query may be a secret.
  if (url === undefined) throw optionError(factoryName, "url", "an https URL", text);
  if (url.username !== "" || url.password !== "") {
    throw new OptionError(factoryName, { option: "url", what: "must hold no user name and no password" });
  }
  const isLocal = url.protocol === "http:" && loopback.test(url.hostname) && allowHttpOnLoopback;
  if (url.protocol === "https:" || isLocal) return url;
  const what = "must be an https URL; one of http is taken on loopback alone, with allowHttpOnLoopback: true";
  throw new OptionError(factoryName, { option: "url", what });
}

interface JwksBounds {
  readonly fetch: Fetch;
  readonly timeoutMs: number;
  readonly maxBytes: number;
  readonly signal: AbortSignal;
}

interface FetchedJwkSet {
  readonly document: unknown;
  /** How long the answer may be used (RFC 9111); undefined when it does not say. */
  readonly maxAgeSeconds: number | undefined;
}

// As registered (RFC 7517 section 8.5), as most servers send it, and as profiles of RFC 9421 name it: all are JSON.
const jsonType = /^application\/(?:[a-z0-9!#$&^_.-]+\+)?json$/;
const accept = "application/jwk-set+json, application/json";

/** Rejects for any answer but 200 with a JSON media type, over `maxBytes` or past `timeoutMs`. Errors show nothing of the answer. */
async function fetchJwkSet(url: URL, bounds: JwksBounds): Promise<FetchedJwkSet> {
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
  const { fetch, signal, maxBytes } = bounds;
  // Who controls the target of a redirect would be trusted with every payout.
  const response = await fetch(url, { redirect: "manual", signal, headers: { accept } });
  try {
    assertJson(response);
    const document: unknown = parse(await readBytes(response, maxBytes));
    return { document, maxAgeSeconds: maxAge(response.headers) };
  } catch (error) {
    // An unread body would hold the connection.
    await response.body?.cancel().catch(() => {});
    throw error;
  }
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
  if (body === null) throw new Error("the key set has no body");
  const chunks: Uint8Array[] = [];
  let length = 0;
  // A throw cancels the stream.
  for await (const chunk of body) {
    length += chunk.length;
    if (length > maxBytes) throw tooLarge();
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
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
  const directives = headers.get("cache-control") ?? "";
  if (/(?:^|,)\s*no-(?:store|cache)\s*(?:,|$)/i.test(directives)) return 0;
  const [, seconds] = /(?:^|,)\s*max-age="?(\d{1,10})"?\s*(?:,|$)/i.exec(directives) ?? [];
  if (seconds === undefined) return undefined;
  const age = Number(headers.get("age") ?? 0);
  return Math.max(0, Number(seconds) - (age > 0 ? age : 0));
}
