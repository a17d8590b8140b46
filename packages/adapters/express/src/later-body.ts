import { createRequestFact, isGuardError, type RequestFact } from "@countersign/core";
import {
  assertStrictJson,
  capturedRawBody,
  claimsJson,
  deliberate,
  parsedJson,
  parseJsonBody,
} from "@countersign/core/internal";
import type { GuardRequest, GuardResponse } from "./types.ts";

/** Requests whose stream holds the captured bytes again. */
const putBack: RequestFact<true> = createRequestFact();
const watched: RequestFact<true> = createRequestFact();
const offered: RequestFact<true> = createRequestFact();

export function markPutBack(req: GuardRequest): void {
  putBack.set(req, true);
}

/** Lets a stream that nobody has read again end with the response: until then Node's parser would keep the request and its bytes. */
export function endWithResponse(req: GuardRequest, res: GuardResponse): void {
  if (putBack.get(req) !== true || watched.get(req) === true) return;
  watched.set(req, true);
  res.once("close", () => {
    if (req.readableFlowing === null) req.resume();
  });
}

/**
 * For what follows a check: makes `req.body` the strictly parsed value of captured JSON, parsed at the first access. Reading it throws a
 * GuardError: 400 for JSON that two parsers could read differently, 415 for a media type that no parser has read after the check. What
 * express.json() makes of the same bytes changes nothing; a handler may set `req.body` to anything. Does nothing for an empty body, and
 * where a parser in front has set `req.body`. Throws these errors at once in front of Fastify, whose own parser comes next.
 */
export function offerBody(req: GuardRequest, res: GuardResponse): void {
  const bytes = capturedRawBody(req);
  if (bytes === undefined || offered.get(req) === true) return;
  offered.set(req, true);
  if (bytes.length === 0) {
    // Express 4's parsers refuse a stream that has ended.
    if (!req.readable)
      Object.defineProperty(req, "_body", { value: true, configurable: true, writable: true });
    return;
  }
  if (isOfMiddie(req)) {
    assertStrictJson(req);
    return;
  }
  if (hasBody(req)) return;
  const later = new LaterBody(req, res, bytes);
  Object.defineProperties(req, {
    body: {
      configurable: true,
      enumerable: true,
      get: () => later.read(),
      set: (value: unknown) => {
        later.write(value);
      },
    },
    _body: {
      configurable: true,
      get: () => later.readMark(),
      set: (mark: unknown) => {
        later.writeMark(mark);
      },
    },
  });
}

/** True if a parser in front, or the platform, has set `req.body`. Express 4's parsers set `{}` for what they do not read. */
function hasBody(req: GuardRequest & { readonly _body?: unknown }): boolean {
  const own = Object.getOwnPropertyDescriptor(req, "body");
  if (own === undefined) return req.body !== undefined;
  if (own.get !== undefined) return true;
  const isPlaceholder = putBack.get(req) === true && req._body !== true && isEmptyObject(own.value);
  return own.value !== undefined && !isPlaceholder;
}

/** True for Node's request in a middleware of @fastify/middie, which Nest on Fastify uses too: Fastify's parser comes after it. */
function isOfMiddie(req: GuardRequest): boolean {
  return "hostname" in req && "query" in req && !("app" in req);
}

class LaterBody {
  readonly #req: GuardRequest;
  readonly #res: GuardResponse;
  readonly #bytes: Buffer;
  /** Only the strict parser may say what a body means that claims to be JSON. */
  readonly #isJson: boolean;
  #isSet = false;
  #value: unknown;
  /** Express 4's parsers leave a request with this mark alone. */
  #mark: unknown;
  /** What a parser of Express 4 that has asked for `_body` does next. */
  #expected: "read" | "write" | undefined;
  #isEnding = false;

  constructor(req: GuardRequest, res: GuardResponse, bytes: Buffer) {
    this.#req = req;
    this.#res = res;
    this.#bytes = bytes;
    this.#isJson = claimsJson(req);
    // Of a stream that has ended they would say only that it is not readable.
    this.#mark = putBack.get(req) !== true;
    // A parser sets req.body while the stream ends, in the same turn, before it calls next().
    if (this.#isJson && putBack.get(req) === true) {
      req.once("end", () => {
        this.#isEnding = true;
        queueMicrotask(() => (this.#isEnding = false));
      });
    }
  }

  read(): unknown {
    const isOfParser = this.#expected === "read";
    this.#expected = isOfParser ? "write" : undefined;
    if (this.#isSet) return this.#value;
    if (isOfParser || this.#isReadByOthers()) return undefined;
    try {
      const { value } = parsedJson(this.#req) ?? parseJsonBody(this.#req);
      this.#set(value);
      return value;
    } catch (error) {
      // A logger that looks at the request after the response: its throw in an event would end the process.
      if (this.#res.headersSent || this.#res.writableEnded || this.#res.closed) return undefined;
      // A handler that has not read its body has not begun its effect.
      throw isGuardError(error) ? deliberate.mark(error) : error;
    }
  }

  write(value: unknown): void {
    const isPlaceholder = this.#expected === "write" && isEmptyObject(value);
    this.#expected = undefined;
    if (isPlaceholder) return;
    const isOfParser = this.#isEnding;
    this.#isEnding = false;
    if (isOfParser && !this.#isVerbatim(value)) return;
    this.#set(value);
  }

  /** Express 4's parsers ask for `_body`, their mark, and then write `req.body = req.body || {}`, whatever the media type. */
  readMark(): unknown {
    this.#expected = this.#mark === true ? undefined : "read";
    return this.#mark;
  }

  writeMark(mark: unknown): void {
    this.#mark = mark;
  }

  #set(value: unknown): void {
    this.#isSet = true;
    this.#value = value;
  }

  /** True for another media type whose bytes somebody reads from the stream, such as multer: `req.body` is that reader's. */
  #isReadByOthers(): boolean {
    if (this.#isJson || putBack.get(this.#req) !== true) return false;
    return this.#req.readableFlowing !== null || this.#req.readableEnded;
  }

  /** True for the captured bytes themselves, as express.raw() and express.text() give them. */
  #isVerbatim(value: unknown): boolean {
    if (Buffer.isBuffer(value)) return value.equals(this.#bytes);
    return typeof value === "string" && Buffer.from(value).equals(this.#bytes);
  }
}

function isEmptyObject(value: unknown): boolean {
  return typeof value === "object" && value !== null && Object.keys(value).length === 0;
}
