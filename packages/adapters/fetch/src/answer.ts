import { isGuardError } from "@countersign/core";
import {
  option,
  problems,
  publishThrown,
  reportReject,
  requestAborted,
  verdicts,
  warnOfError,
  type HeaderFields,
  type OptionTable,
  type Replacement,
  type ProblemAnswer,
} from "@countersign/core/internal";
import {
  respondedEnd,
  withoutResponse,
  type Handling,
  type HandlerEnd,
  type KeptAnswer,
  type OwnedRequest,
  type Performance,
} from "@countersign/idempotency-guard/internal";
import { BodyLate, giveUp, readCapped } from "./body.ts";
import { isBodyRefusal } from "./later-body.ts";

export interface RefusalOptions {
  /** Called once for each refusal, or error, that the route answers, before its answer; for the log. Its throw becomes a process warning. */
  readonly onReject?: ((error: unknown, request: Request) => void) | undefined;
  /** Adds the verdict's id, as `instance` (RFC 9457 section 3.1.5). Default false. */
  readonly verdictId?: boolean | undefined;
}

export const refusalTable = {
  onReject: option.optional(option.call<NonNullable<RefusalOptions["onReject"]>>()),
  verdictId: option.boolean(false),
} satisfies OptionTable<RefusalOptions, unknown>;

export interface Refusing extends RefusalOptions {
  readonly name: string;
  readonly unauthorizedHeaders?: HeaderFields | undefined;
  /** Replaces every refusal. */
  readonly hide?: (() => Response | Promise<Response>) | undefined;
}

/** Answers a check's throw with problem details (RFC 9457), one body for every 401. Rethrows what is no refusal. */
export function refusalResponse(error: unknown, options?: Parameters<typeof problems.ofError>[1]): Response {
  if (!isGuardError(error)) throw error;
  // The client has left.
  if (error.code === requestAborted) return new Response(null, { status: 400 });
  return toResponse(problems.ofError(error, options));
}

/**
 * A route's {@link refusalResponse}: published, and hidden where the route hides. I16: what is no refusal is 500, and never the app's to
 * answer: its error handler could say 200 or 409 for what nobody has paid, out of the route's sight.
 */
export async function refuse(request: Request, thrown: unknown, refusing: Refusing): Promise<Response> {
  const { name, onReject, hide } = refusing;
  const error = verdicts.refusedWith(name, thrown);
  const isRefusal = isGuardError(error);
  if (isRefusal && error.code === requestAborted) return refusalResponse(error);
  if (!isRefusal) publishThrown(error, request);
  if (onReject !== undefined) reportReject(name, onReject, error, request);
  // No check has published a handler's throw.
  verdicts.publish({ name, req: request }, verdicts.start(), error);
  try {
    if (hide !== undefined) return assertResponse(await hide());
    return isRefusal ? refusalResponse(error, refusing) : toResponse(problems.ofStatus(500));
  } catch (failure) {
    warnOfError(name, "could not answer a refusal", failure);
    return toResponse(problems.ofStatus(500));
  } finally {
    verdicts.writeUnreported({ name, req: request }, request.method, error);
  }
}

/**
 * Calls a handler that owns no key: what it throws is the app's to answer, unless it could not read the body. Subscribers hear it too.
 */
export async function handled(
  request: Request,
  handler: () => Response | Promise<Response>,
  refusing: Refusing,
): Promise<Response> {
  try {
    return await handler();
  } catch (error) {
    if (isBodyRefusal(request, error)) return refuse(request, error, refusing);
    if (!isGuardError(error)) publishThrown(error, request);
    throw error;
  }
}

/** The handler's response until the key has ended. */
interface Held {
  response: Response | undefined;
}

export interface OwnedHandler {
  readonly request: Request;
  readonly handler: (owned: OwnedRequest) => Promise<Response>;
  /** Responds to what the handler has thrown. */
  readonly refused: (error: unknown) => Promise<Response>;
}

/**
 * Runs the handler that owns a key: `perform` gives the key, and says which response leaves, that of the handler or of what it threw, once
 * the key has ended (I4). The body of a success is read first: if its source fails, that is no success. Undefined for an exempt request.
 */
export function responseTo(
  perform: (begin: Handling["begin"]) => Promise<Performance>,
  owned: OwnedHandler,
): Promise<Response>;
export function responseTo(
  perform: (begin: Handling["begin"]) => Promise<Performance | { readonly passes: true }>,
  owned: OwnedHandler,
): Promise<Response | undefined>;
export async function responseTo(
  perform: (begin: Handling["begin"]) => Promise<Performance | { readonly passes: true }>,
  { request: { signal }, handler, refused }: OwnedHandler,
): Promise<Response | undefined> {
  const held: Held = { response: undefined };
  const performance = await perform(async (owned) => {
    try {
      const response = await handler(owned);
      if (!isResponse(response)) return { kind: "without-response" };
      const end = await endOf(response, owned, signal.aborted);
      held.response = response;
      return end;
    } catch (error) {
      held.response = await refused(error);
      return { kind: "threw", error, status: held.response.status };
    }
  });
  if ("passes" in performance) return undefined;
  if ("response" in performance) return responseOf(performance.response);
  const { response } = held;
  if (response === undefined) return refused(withoutResponse());
  if (performance.replacement === undefined) return response;
  giveUp(response.body);
  return replacementResponse(performance.replacement);
}

/** How a handler's response has ended, with what is kept of it. */
async function endOf(response: Response, owned: OwnedRequest, hasLeft: boolean): Promise<HandlerEnd> {
  const { status } = response;
  if (status < 200 || status >= 400) return respondedEnd(status, hasLeft);
  const given = await copyAnswer(response, owned);
  if (given === undefined) return { kind: "response-failed", begun: status, status };
  return { ...respondedEnd(status, hasLeft), given };
}

// By parts, since frameworks have own classes, and apps return values that no server can send.
function isResponse(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  const { status, headers, clone }: Partial<Record<keyof Response, unknown>> = value;
  const hasStatus = typeof status === "number" && status >= 200 && status <= 599;
  const hasHeaders = typeof headers === "object" && headers !== null && Symbol.iterator in headers;
  return hasStatus && hasHeaders && typeof clone === "function";
}

function assertResponse(answer: Response): Response {
  if (isResponse(answer)) return answer;
  throw new TypeError("option hide must return a Response");
}

// As other adapters hold back.
const usualLimitBytes = 1_048_576;

/** Reads a copy of a success, as far as it is kept or held back. Undefined for a body whose source has failed. */
async function copyAnswer(response: Response, owned: OwnedRequest): Promise<HandlerEnd["given"]> {
  const { status, headers } = response;
  const rawHeaders = [...headers].flat();
  const { keptBytes = usualLimitBytes, readMs } = owned;
  // One that the handler has read itself cannot be read again.
  if (response.bodyUsed) return { status, rawHeaders, body: undefined };
  if (response.body === null) return { status, rawHeaders, body: Buffer.alloc(0) };
  try {
    return { status, rawHeaders, body: await readCapped(response.clone().body, keptBytes, readMs) };
  } catch (error) {
    // A body that goes on for longer leaves as it comes: its status has been decided by then.
    return error instanceof BodyLate ? { status, rawHeaders, body: undefined } : undefined;
  }
}

/** Undefined over the limit, for a body not ended after `readMs`, or one that cannot be read twice. */
export async function copyBody(
  response: Response,
  limitBytes: number,
  readMs?: number,
): Promise<Buffer | undefined> {
  try {
    return await readCapped(response.clone().body, limitBytes, readMs);
  } catch {
    return undefined;
  }
}

function responseOf({ status, headers, body }: KeptAnswer): Response {
  const lines = new Headers();
  for (const [name, value] of headers) lines.append(name, value);
  // Only an answer without content may have this status.
  return new Response(status === 204 || status === 205 ? null : body, { status, headers: lines });
}

export function replacementResponse({ status, retryAfterSeconds }: Replacement): Response {
  const headers = retryAfterSeconds === undefined ? {} : { "Retry-After": String(retryAfterSeconds) };
  return toResponse(problems.ofStatus(status, headers));
}

function toResponse({ status, headers, body }: ProblemAnswer): Response {
  const lines = new Headers();
  for (const [name, value] of Object.entries(headers)) {
    for (const line of [value ?? []].flat()) lines.append(name, String(line));
  }
  return new Response(body, { status, headers: lines });
}
