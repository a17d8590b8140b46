import { isGuardError } from "@countersign/core";
import { assertStrictJson, capturedRawBody, option, type OptionTable } from "@countersign/core/internal";
import { composedGuard, thrownByCheck } from "@countersign/express/internal";
import { guardErrors, type GuardErrorsOptions } from "@countersign/express";
import type { FastifyReply, FastifyRequest } from "fastify";

export interface RefusalOptions {
  /** Called once for each refusal, before the answer; for the log. Its throw becomes a process warning. */
  readonly onReject?: ((error: unknown, request: FastifyRequest) => void) | undefined;
  /** Adds the verdict's id, as `instance` (RFC 9457 section 3.1.5). Default false. */
  readonly verdictId?: boolean | undefined;
}

export const refusalTable = {
  onReject: option.optional(option.call<NonNullable<RefusalOptions["onReject"]>>()),
  verdictId: option.boolean(false),
} satisfies OptionTable<RefusalOptions, unknown>;

type Next = (error?: Error) => void;

/** One check as a step; `next` gets its throw. */
type CheckHook = (request: FastifyRequest, reply: FastifyReply, next: (error?: unknown) => void) => void;

/** One check as a hook of any stage; `preParsing` has the body's stream before `next`. */
export type Hook = (
  request: FastifyRequest,
  reply: FastifyReply,
  ...rest: readonly [next: Next] | readonly [payload: unknown, next: Next]
) => void;

interface StepWays<Found> {
  readonly found: (found: Found) => void;
  readonly refused: (error: unknown) => void;
}

/** A check whose adapter goes on with the check's result. */
type Step<Found> = (request: FastifyRequest, reply: FastifyReply, ways: StepWays<Found>) => void;

export type Refuse = (error: unknown, request: FastifyRequest, reply: FastifyReply, next: Next) => void;

type Check = (request: FastifyRequest, reply: FastifyReply) => void | Promise<void>;

/**
 * Makes a hook of one check, for `onRequest` or `preParsing`, before the body's parser, which reads exactly the checked bytes; a check that
 * reads no body fits every stage. A captured body that claims to be JSON is refused too, 400 where two parsers could read it differently and
 * 415 for another media type, because Fastify's parser keeps the last of two members with one name. `refuse`, from `refusal()`, answers
 * what the check throws. Without it that goes to Fastify's error handler, whose response tells the caller the reason.
 */
export function hook(name: string, check: Check, refuse?: Refuse): Hook {
  const run = checkHook(name, (request, reply) => {
    const checked = check(request, reply);
    if (checked === undefined) return assertParsedAlike(request);
    return checked.then(() => assertParsedAlike(request));
  });
  return (request, reply, ...rest) => {
    const next: unknown = rest.at(-1);
    if (!isNext(next)) throw new TypeError(`hook("${name}", …): Fastify gave no function to go on with`);
    run(request, reply, (error) => {
      if (error === undefined || refuse === undefined) next(errorOf(error));
      else refuse(error, request, reply, next);
    });
  };
}

function isNext(value: unknown): value is Next {
  return typeof value === "function";
}

/** An app that has taken Fastify's parser of JSON away reads the bytes by its own. */
function assertParsedAlike({ server, raw }: FastifyRequest): void {
  if (server.hasContentTypeParser("application/json")) assertStrictJson(raw);
}

/** Runs a step of Express's adapter on Node's request and response: events, unread bodies, no answer to a client that left. */
export function checkHook(name: string, check: Check): CheckHook {
  return (request, reply, next) => {
    composedGuard(name, () => check(request, reply))(request.raw, reply.raw, next);
  };
}

/** {@link hook} for a check with a result, such as the run that owns a key. */
export function step<Found>(
  name: string,
  check: (request: FastifyRequest, reply: FastifyReply) => Promise<Found>,
): Step<Found> {
  return (request, reply, { found, refused }) => {
    composedGuard(name, () => check(request, reply), { found, refused })(request.raw, reply.raw, refused);
  };
}

/** Answers a refusal on Node's response; Fastify's own error handler gets other errors. */
export function refusal({
  onReject,
  ...options
}: Omit<GuardErrorsOptions, "onReject" | "hide"> & RefusalOptions): Refuse {
  return (given, request, reply, next) => {
    const error = thrownByCheck(given);
    if (isGuardError(error)) {
      takeOverReply(reply);
      const answer = guardErrors({ ...options, onReject: callbackOf(onReject, request) });
      answer(error, request.raw, reply.raw, () => undefined);
    } else next(errorOf(given));
  };
}

/**
 * Moves the answer to Node's response, with the reply's header fields from the app's hooks, such as CORS; the answer's own win. Leaves
 * out fields that describe a body, which is another one now.
 */
export function takeOverReply(reply: FastifyReply): void {
  for (const [name, value] of Object.entries(reply.getHeaders())) {
    // A time-out of the app, for example, has answered meanwhile.
    if (reply.raw.headersSent) break;
    if (value !== undefined && !describesBody.test(name)) reply.raw.setHeader(name, value);
  }
  reply.hijack();
}

const describesBody =
  /^(?:content-(?:digest|disposition|encoding|language|length|location|range|type)|repr-digest|transfer-encoding|trailer|etag|last-modified|accept-ranges|location)$/;

/** Reports a refusal, then goes on as without one: to the app's parsers, and a handler that calls callNotFound(). */
export function hiddenRefusal({ onReject }: RefusalOptions): Refuse {
  return (error, request, reply, next) => {
    const hide = guardErrors({ hide: true, onReject: callbackOf(onReject, request) });
    hide(error, request.raw, reply.raw, () => {
      // Of a body over the limit the beginning is gone; its sender knows the credentials.
      const isCut = request.raw.readableDidRead && capturedRawBody(request) === undefined;
      if (isCut) reply.callNotFound();
      else next();
    });
  };
}

export function errorOf(error: unknown): Error | undefined {
  if (error === undefined || error instanceof Error) return error;
  return new Error("a check threw a value that is no Error", { cause: error });
}

function callbackOf(
  onReject: RefusalOptions["onReject"],
  request: FastifyRequest,
): GuardErrorsOptions["onReject"] {
  return onReject && ((refused) => onReject(refused, request));
}
