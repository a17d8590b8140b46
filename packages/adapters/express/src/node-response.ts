import { errorMonitor } from "node:events";
import type { OutgoingHttpHeader } from "node:http";
import { createRequestFact, type RequestFact } from "@countersign/core";
import { problems, type Replacement } from "@countersign/core/internal";
import { expectManyProperties } from "./guard.ts";
import { isOverHttp2, replaceStatus } from "./over-http2.ts";
import type { GuardResponse, OverHttp2 } from "./types.ts";

export interface ResponseHooks {
  write(chunk: unknown, encoding: unknown, callback: unknown): boolean;
  end(chunk: unknown, encoding: unknown, callback: unknown): void;
  writeHead(head: readonly unknown[]): void;
  flushHeaders(): void;
  destroy(error: Error | undefined): void;
  /** Runs a handler that follows the hooks. */
  start?(handler: () => void): void;
  /** What follows the hooks has failed. */
  failed?(error: unknown): void;
  /** What does not follow the hooks has failed. */
  failedElsewhere?(error: unknown): void;
  /** What follows the hooks, or does not, has failed. */
  failedSomewhere?(error: unknown): void;
  /** The handler that follows the hooks never runs. */
  neverBegan?(): void;
  passedOn?(hasPassed: boolean): void;
}

export type Call = readonly [chunk: unknown, encoding: unknown, callback: unknown];

class BareResponse implements ResponseHooks {
  readonly #res: GuardResponse;
  readonly #methods: Pick<GuardResponse, "write" | "end" | "writeHead" | "flushHeaders" | "destroy">;

  constructor(res: GuardResponse) {
    this.#res = res;
    // oxlint-disable-next-line typescript/unbound-method -- to be applied to this very response
    const { write, end, writeHead, flushHeaders, destroy } = res;
    this.#methods = { write, end, writeHead, flushHeaders, destroy };
  }

  write(...call: Call): boolean {
    return Boolean(Reflect.apply(this.#methods.write, this.#res, call));
  }

  end(...call: Call): void {
    if (!isOverHttp2(this.#res)) {
      Reflect.apply(this.#methods.end, this.#res, call);
      return;
    }
    // The end() of HTTP/2 gives its chunk to write(), which is hooked.
    const { chunk, encoding, callback } = toPiece(...call);
    if (chunk !== undefined && chunk !== null) this.write(chunk, encoding, undefined);
    Reflect.apply(this.#methods.end, this.#res, [callback]);
  }

  writeHead(head: readonly unknown[]): void {
    Reflect.apply(this.#methods.writeHead, this.#res, head);
  }

  flushHeaders(): void {
    Reflect.apply(this.#methods.flushHeaders, this.#res, []);
  }

  destroy(error: Error | undefined): void {
    Reflect.apply(this.#methods.destroy, this.#res, [error]);
  }
}

const hooksOf: RequestFact<ResponseHooks> = createRequestFact();

/**
 * Puts hooks before the methods of `res`; `makeHooks` gets those below: earlier hooks, or Node's methods. On the response itself, since
 * Express exchanges its prototype on entering or leaving a mounted app.
 */
export function hookResponse(res: GuardResponse, makeHooks: (below: ResponseHooks) => ResponseHooks): void {
  const earlier = hooksOf.get(res);
  hooksOf.set(res, makeHooks(earlier ?? new BareResponse(res)));
  if (earlier !== undefined) return;
  expectManyProperties(res, "sendDate");
  res.write = hookedWrite;
  res.end = hookedEnd;
  res.writeHead = hookedWriteHead;
  res.flushHeaders = hookedFlushHeaders;
  res.destroy = hookedDestroy;
}

/** Whether something behind the hooks, such as compression, answers in the app's place, perhaps later. */
export function isWrapped(res: GuardResponse): boolean {
  return res.write !== hookedWrite || res.end !== hookedEnd;
}

/** The hooks of a response whose answer is held back. */
export function hooksOfResponse(res: object): ResponseHooks | undefined {
  return hooksOf.get(res);
}

/** Tells the hooks of `res` that the app's handler has failed, before an error handler answers. */
export function reportFailure(res: GuardResponse, error: unknown): void {
  hooksOf.get(res)?.failed?.(error);
}

function hookedWrite(this: GuardResponse, chunk: unknown, encoding?: unknown, callback?: unknown): boolean {
  return requiredHooks(this).write(chunk, encoding, callback);
}

function hookedEnd(
  this: GuardResponse,
  chunk?: unknown,
  encoding?: unknown,
  callback?: unknown,
): GuardResponse {
  requiredHooks(this).end(chunk, encoding, callback);
  return this;
}

function hookedWriteHead(this: GuardResponse, ...head: readonly unknown[]): GuardResponse {
  requiredHooks(this).writeHead(head);
  return this;
}

function hookedFlushHeaders(this: GuardResponse): void {
  requiredHooks(this).flushHeaders();
}

function hookedDestroy(this: GuardResponse, error?: Error): GuardResponse {
  requiredHooks(this).destroy(error);
  return this;
}

// An object that inherits from the response speaks for it. For any other, an answer must not slip past the hooks.
function requiredHooks(res: object): ResponseHooks {
  for (let subject: object | null = res; subject !== null; subject = Object.getPrototypeOf(subject)) {
    const hooks = hooksOf.get(subject);
    if (hooks !== undefined) return hooks;
  }
  throw new TypeError("idempotencyGuard: a method of the response was called on another object");
}

export interface ResponseHead {
  readonly statusCode: number;
  /** Undefined over HTTP/2. */
  readonly statusMessage: string | undefined;
  /** By lower-case name. */
  readonly fields: ReadonlyMap<string, OutgoingHttpHeader>;
}

export function copyHead(res: GuardResponse): ResponseHead {
  const fields = new Map<string, OutgoingHttpHeader>();
  for (const name of res.getHeaderNames()) {
    const value = res.getHeader(name);
    // Node appends to a list in place.
    if (value !== undefined) fields.set(name, Array.isArray(value) ? [...value] : value);
  }
  return {
    statusCode: res.statusCode,
    statusMessage: isOverHttp2(res) ? undefined : res.statusMessage,
    fields,
  };
}

/** Restores the head. Unchanged fields keep their spelling. */
export function restoreHead(res: GuardResponse, { statusCode, statusMessage, fields }: ResponseHead): void {
  res.statusCode = statusCode;
  if (statusMessage !== undefined) res.statusMessage = statusMessage;
  for (const name of res.getHeaderNames()) if (!fields.has(name)) res.removeHeader(name);
  for (const [name, value] of fields) if (res.getHeader(name) !== value) res.setHeader(name, value);
}

const describesBody =
  /^(?:content-|transfer-encoding$|trailer$|etag$|last-modified$|accept-ranges$|location$)/;

/** Writes the head of problem details (RFC 9457), returns its body. Drops fields that the handler set for its unsent answer. */
export function replaceHead(
  res: GuardResponse,
  { status, retryAfterSeconds }: Replacement,
  namesBefore: readonly string[],
): string {
  for (const name of res.getHeaderNames()) {
    if (describesBody.test(name) || !namesBefore.includes(name)) res.removeHeader(name);
  }
  const retryAfter = retryAfterSeconds === undefined ? {} : { "Retry-After": String(retryAfterSeconds) };
  const { headers, body } = problems.ofStatus(status, retryAfter);
  replaceStatus(res, status);
  for (const [name, value] of Object.entries(headers)) if (value !== undefined) res.setHeader(name, value);
  res.setHeader("Content-Length", Buffer.byteLength(body));
  return body;
}

/**
 * True for the first answer, or an error handler's in its place. Undoes any other change of status: too late, as with Node. Makes the
 * status the whole number that Node will send: of a text, such as `res.status("409")` of Express 4, or a fraction.
 */
export function beginsAnew(res: GuardResponse, status: number | undefined): boolean {
  const given: unknown = res.statusCode;
  const statusCode = Math.trunc(Number(given));
  // Node names what it refuses.
  if (statusCode > 0) res.statusCode = statusCode;
  if (status === undefined || (statusCode !== status && statusCode >= 400)) return true;
  res.statusCode = status;
  return false;
}

/** Whether nobody can receive an answer any more. Responses of HTTP/2 have no `destroyed`. */
export function isDeserted(res: GuardResponse & OverHttp2): boolean {
  return res.destroyed || res.stream?.destroyed === true;
}

/**
 * Calls `stopped` when what was piped to `res` has stopped because the client has left. `sendFile()` and pipes tell nobody of it, and
 * then nothing ends the response.
 */
export function onStoppedPipe(res: GuardResponse, stopped: () => void): void {
  let isTold = false;
  const look = (): void => {
    if (isTold || !isDeserted(res)) return;
    isTold = true;
    stopped();
  };
  res.on("unpipe", look);
  // A source that was piped to nobody is destroyed, never unpiped.
  res.on("pipe", (source) => source.once("close", look));
}

/** Calls `failed` when a source that is piped to `res` fails, before anybody handles that: its handler may respond 400, as Nest's does. */
export function onFailedPipe(res: GuardResponse, failed: () => void): void {
  res.on("pipe", (source) => source.once(errorMonitor, failed));
}

/** Does `work` with a signal that aborts when the client of `res` leaves, or has left. Removes its listener. */
export async function whileConnected<T>(
  res: GuardResponse,
  work: (left: AbortSignal) => T | Promise<T>,
): Promise<T> {
  const client = new AbortController();
  const leave = (): void => client.abort();
  if (isDeserted(res)) leave();
  else res.once("close", leave);
  try {
    return await work(client.signal);
  } finally {
    res.removeListener("close", leave);
  }
}

type Callback = (error?: Error | null) => void;

export interface Piece {
  readonly chunk: unknown;
  readonly encoding: BufferEncoding | undefined;
  readonly callback: Callback | undefined;
}

// Node takes (chunk, encoding, callback), (chunk, callback) and, for end, (callback).
export function toPiece(chunk: unknown, encoding: unknown, callback: unknown): Piece {
  if (isCallback(chunk)) return { chunk: undefined, encoding: undefined, callback: chunk };
  if (isCallback(encoding)) return { chunk, encoding: undefined, callback: encoding };
  return {
    chunk,
    encoding: typeof encoding === "string" && Buffer.isEncoding(encoding) ? encoding : undefined,
    callback: isCallback(callback) ? callback : undefined,
  };
}

function isCallback(value: unknown): value is Callback {
  return typeof value === "function";
}

// A write's callback says that its bytes may be overwritten.
export function copyChunk(chunk: unknown): string | Buffer {
  if (typeof chunk === "string") return chunk;
  if (chunk instanceof Uint8Array) return Buffer.from(chunk);
  throw Object.assign(new TypeError("a response takes strings, Buffers and Uint8Arrays"), {
    code: "ERR_INVALID_ARG_TYPE",
  });
}

export function soon(callback: Callback | undefined, error?: Error): void {
  if (callback !== undefined) process.nextTick(callback, error);
}

export function alreadyEnded(code: string): Error {
  return Object.assign(new Error("the response has already been ended"), { code });
}
