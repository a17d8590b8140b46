import { isPromiseLike, option, optionError, type OptionOwner } from "@countersign/core/door";
import { runOf, unpaidAnswers, type goOn, type OwnedRun } from "@countersign/idempotency-guard/door";
import type { RequestIdempotency } from "@countersign/idempotency-guard";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { internal } from "./hidden-route.ts";
import { errorOf, refusalTable, type RefusalOptions } from "./hooks.ts";
import { connectionTable, type ConnectionOptions } from "./received-request.ts";

export type RouteOption = "url" | keyof RefusalOptions | keyof ConnectionOptions;

export const routeTable = { ...refusalTable, ...connectionTable, url: option.own(readUrl) };

/** The key's controls for a guarded request's handler. Throws an Error where no key was claimed. */
export function idempotencyOf(request: FastifyRequest): RequestIdempotency {
  const run = runOf(request);
  if (run === undefined) throw new Error("idempotencyOf: no key was claimed for this request");
  return run.handle;
}

export function passageOf(
  { raw: req }: FastifyRequest,
  { raw: res }: FastifyReply,
  next: (error?: Error) => void,
): Parameters<typeof goOn>[1] {
  return { req, res, next: (fault) => next(errorOf(fault)) };
}

/**
 * I2: what an owned key's request fails with, a handler's throw or a hook's, is no payment: a success or 409 of the app's error handler
 * becomes 500. Fastify gives every error to `reply.send`.
 */
export function watchErrors(reply: FastifyReply, reserved: boolean): void {
  const send = reply.send.bind(reply);
  reply.send = (...payload) => {
    const [error] = payload;
    const isError = error instanceof Error || internal(reply, "fastify.reply.isError") === true;
    if (isError) unpaidAnswers(reply.raw, error, reserved);
    return send(...payload);
  };
}

/** Calls a handler and watches its promise: a time-out may answer before that ends. */
export function watched(run: OwnedRun | undefined, reply: FastifyReply, handler: () => unknown): unknown {
  const send = reply.send.bind(reply);
  const then = reply.then.bind(reply);
  let sends = 0;
  reply.send = (...payload) => {
    sends += 1;
    return send(...payload);
  };
  // An async handler that returns its reply after the only answer: its promise waits for that to leave.
  // oxlint-disable-next-line unicorn/no-thenable -- it has one, which is called when the handler returns the reply
  reply.then = (sent, failed) => {
    if (sends === 1) run?.handlerAnswered();
    then(sent, failed);
  };
  const returned = handler();
  if (returned === reply || !isPromiseLike(returned)) return returned;
  // A query builder runs its query at each then().
  const ended = Promise.resolve(returned);
  run?.watch(ended);
  return ended.then((payload) => {
    // Fastify ends with an empty answer, but none to a caller who has left.
    if (payload === undefined && sends === 0 && reply.raw.destroyed) {
      void run?.decide(reply.statusCode, undefined, true);
    }
    return payload;
  });
}

/** In the plugin's own scope: the checks read the bytes, and no parser of the app does. */
export function leaveBodiesAlone(fastify: FastifyInstance): void {
  fastify.removeAllContentTypeParsers();
  fastify.addContentTypeParser("*", leaveAlone);
}

export function leaveAlone(
  _request: FastifyRequest,
  _payload: unknown,
  done: (error: Error | null) => void,
): void {
  done(null);
}

/** Registered instead of its result, a factory would get the instance as options. */
export function assertNotRegistered(factoryName: string, options: object): void {
  if (typeof options === "object" && options !== null && "addContentTypeParser" in options) {
    throw new TypeError(
      `${factoryName}: write app.register(${factoryName}(options)), not app.register(${factoryName}, options)`,
    );
  }
}

function readUrl(url: unknown, owner: OptionOwner, name: string): string {
  if (typeof url === "string" && url.startsWith("/")) return url;
  throw optionError(owner, name, 'the path of the route, such as "/payouts"', url);
}
