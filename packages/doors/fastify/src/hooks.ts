import { isGuardError } from "@countersign/core";
import { capturedRawBody, option, type OptionTable } from "@countersign/core/door";
import { composedGuard } from "@countersign/express/door";
import { guardErrors, type GuardErrorsOptions } from "@countersign/express";
import type { FastifyReply, FastifyRequest } from "fastify";

/** How a hook answers what its checks refuse. */
export interface RefusalOptions {
  /** Called once for each refusal, before the answer; for the log. Its own throw becomes a process warning. */
  readonly onReject?: ((error: unknown, request: FastifyRequest) => void) | undefined;
  /** Whether the answer has the id of its verdict, as `instance` (RFC 9457 section 3.1.5). Default false. */
  readonly verdictId?: boolean | undefined;
}

export const refusalTable = {
  onReject: option.optional(option.call<NonNullable<RefusalOptions["onReject"]>>()),
  verdictId: option.boolean(false),
} satisfies OptionTable<RefusalOptions, unknown>;

/** Fastify's `done` of a hook. */
type Next = (error?: Error) => void;

/** One check as a step; `next` gets what it throws. */
export type Hook = (request: FastifyRequest, reply: FastifyReply, next: (error?: unknown) => void) => void;

/** Where a request goes on from a check of ours. */
interface StepWays<Found> {
  readonly found: (found: Found) => void;
  readonly refused: (error: unknown) => void;
}

/** A check of ours, whose door goes on with what it has found. */
type Step<Found> = (request: FastifyRequest, reply: FastifyReply, ways: StepWays<Found>) => void;

/** Answers what a check threw. */
export type Refuse = (error: unknown, request: FastifyRequest, reply: FastifyReply, next: Next) => void;

/** A step of Express's door on Node's request and response: events, unread bodies, no answer for a client that has left. */
export function hook(
  name: string,
  check: (request: FastifyRequest, reply: FastifyReply) => void | Promise<void>,
): Hook {
  return (request, reply, next) => {
    composedGuard(name, () => check(request, reply))(request.raw, reply.raw, next);
  };
}

/** {@link hook} of a check that finds something, such as the run that owns a key. */
export function step<Found>(
  name: string,
  check: (request: FastifyRequest, reply: FastifyReply) => Promise<Found>,
): Step<Found> {
  return (request, reply, { found, refused }) => {
    composedGuard(name, () => check(request, reply), { found, refused })(request.raw, reply.raw, refused);
  };
}

/** Answers a refusal on Node's response, as everywhere else; Fastify's own error handler gets what is none. */
export function refusal({
  onReject,
  ...options
}: Omit<GuardErrorsOptions, "onReject" | "hide"> & RefusalOptions): Refuse {
  return (error, request, reply, next) => {
    if (isGuardError(error)) {
      takeOverReply(reply);
      const answer = guardErrors({ ...options, onReject: callbackOf(onReject, request) });
      answer(error, request.raw, reply.raw, () => undefined);
    } else next(errorOf(error));
  };
}

/**
 * From here on the answer is written on Node's response, with the header fields that the app's hooks have given the reply, such as those
 * of CORS: what the answer says itself is written later, and wins. Not with fields that describe a body, which is another one now.
 */
export function takeOverReply(reply: FastifyReply): void {
  for (const [name, value] of Object.entries(reply.getHeaders())) {
    if (value !== undefined && !describesBody.test(name)) reply.raw.setHeader(name, value);
  }
  reply.hijack();
}

const describesBody =
  /^(?:content-(?:digest|disposition|encoding|language|length|location|range|type)|repr-digest|transfer-encoding|trailer|etag|last-modified|accept-ranges|location)$/;

/** Tells of a refusal, and goes on as if there had been none: to the app's own parsers, and to a handler that calls callNotFound(). */
export function hiddenRefusal({ onReject }: RefusalOptions): Refuse {
  return (error, request, reply, next) => {
    const hide = guardErrors({ hide: true, onReject: callbackOf(onReject, request) });
    hide(error, request.raw, reply.raw, () => {
      // The beginning of a body over the limit is gone; its sender knows the credentials.
      const isCut = request.raw.readableDidRead && capturedRawBody(request) === undefined;
      if (isCut) reply.callNotFound();
      else next();
    });
  };
}

/** What `next` takes. */
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
