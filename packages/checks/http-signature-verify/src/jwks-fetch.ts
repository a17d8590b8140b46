import { withDeadline } from "@countersign/core";

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
