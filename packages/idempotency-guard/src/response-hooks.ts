import {
  createRequestFact,
  expectManyProperties,
  type GuardResponse,
  type RequestFact,
} from "@countersign/guard";

/** What a response does with the calls of its handler. */
export interface ResponseHooks {
  write(chunk: unknown, encoding: unknown, callback: unknown): boolean;
  end(chunk: unknown, encoding: unknown, callback: unknown): void;
  writeHead(head: readonly unknown[]): void;
  flushHeaders(): void;
  destroy(error: Error | undefined): void;
}

/** The methods that were there before, to be applied to the response. */
export type OriginalMethods = Pick<GuardResponse, "write" | "end" | "writeHead" | "flushHeaders" | "destroy">;

const hooksOf: RequestFact<ResponseHooks> = createRequestFact();

/**
 * Puts `hooks` before the methods of `res` and returns these. On the response itself: Express exchanges its prototype
 * whenever it enters or leaves a mounted app.
 */
export function hookResponse(res: GuardResponse, hooks: ResponseHooks): OriginalMethods {
  // oxlint-disable-next-line typescript/unbound-method -- to be applied to this very response
  const { write, end, writeHead, flushHeaders, destroy } = res;
  hooksOf.set(res, hooks);
  expectManyProperties(res, "sendDate");
  res.write = hookedWrite;
  res.end = hookedEnd;
  res.writeHead = hookedWriteHead;
  res.flushHeaders = hookedFlushHeaders;
  res.destroy = hookedDestroy;
  return { write, end, writeHead, flushHeaders, destroy };
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
