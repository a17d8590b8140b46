import { isPromiseLike, option, optionError, type OptionOwner } from "@countersign/core/internal";
import { reportFailure } from "@countersign/express/internal";
import { watchOf, type goOn, type ResponseWatch } from "@countersign/idempotency-guard/internal";
import type { RequestIdempotency } from "@countersign/idempotency-guard";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { internal } from "./hidden-route.ts";
import { errorOf, refusalTable, type RefusalOptions } from "./hooks.ts";
import { connectionTable, type ConnectionOptions } from "./received-request.ts";

export type RouteOption = "url" | keyof RefusalOptions | keyof ConnectionOptions;

export const routeTable = { ...refusalTable, ...connectionTable, url: option.own(readUrl) };

/** The key's controls for a guarded request's handler. Throws an Error where no key was claimed. */
export function idempotencyOf(request: FastifyRequest): RequestIdempotency {
  const watch = watchOf(request);
  if (watch === undefined) throw new Error("idempotencyOf: no key was claimed for this request");
  return watch.owned.handle;
}

export function passageOf(
  { raw: req }: FastifyRequest,
  { raw: res }: FastifyReply,
  next: (error?: Error) => void,
): Parameters<typeof goOn>[1] {
  return { req, res, next: (fault) => next(errorOf(fault)) };
}

/** Tells the watch what is sent in its response. Fastify gives every error to `reply.send`, a handler's throw or a hook's. */
export function watchReply(watch: ResponseWatch, reply: FastifyReply): void {
  const send = reply.send.bind(reply);
  const code = reply.code.bind(reply);
  let handlersCode = 200;
  reply.code = reply.status = (status: number) => {
    if (watch.isWithin) handlersCode = status;
    return code(status);
  };
  reply.send = (...payload) => {
    const [given] = payload;
    const isError = given instanceof Error || internal(reply, "fastify.reply.isError") === true;
    if (isError) reportFailure(reply.raw, given);
    // A response that was ended by somebody else shows their status.
    else watch.given(reply.raw.writableEnded ? handlersCode : statusOf(given, reply));
    return send(...payload);
  };
}

function statusOf(payload: unknown, reply: FastifyReply): number {
  return payload instanceof Response ? payload.status : reply.statusCode;
}

/** Calls a handler and watches its promise: a time-out may answer before that ends. */
export function watched(
  watch: ResponseWatch | undefined,
  reply: FastifyReply,
  handler: () => unknown,
): unknown {
  if (watch === undefined) return handler();
  // Whoever ended the response meanwhile has ended the key too.
  if (!watch.mayBegin()) return reply;
  const send = reply.send.bind(reply);
  const then = reply.then.bind(reply);
  let sends = 0;
  let isReturned = false;
  reply.send = (...payload) => {
    sends += 1;
    return send(...payload);
  };
  // An async handler that returns its reply: its promise waits for the response to leave, and tells nothing of the handler.
  // oxlint-disable-next-line unicorn/no-thenable -- it has one, which is called when the handler returns the reply
  reply.then = (sent, failed) => {
    isReturned = true;
    watch.handlerAnswered();
    then(sent, failed);
  };
  const returned = watch.start(handler);
  if (returned === reply || !isPromiseLike(returned)) return returned;
  // A query builder runs its query at each then().
  const ended = Promise.resolve(returned);
  watch.watch(ended);
  return ended.then((payload) => {
    // Fastify ends with an empty answer, but none to a caller who has left.
    if (payload === undefined && sends === 0 && !isReturned && reply.raw.destroyed) {
      void watch.decide(reply.statusCode, undefined, true);
    }
    return payload;
  });
}

/**
 * Watches the handler that follows a hook, for this request alone, and lets it begin only with its key. Does nothing in a version of Fastify
 * that keeps a route's handler elsewhere.
 */
export function watchHandler(watch: ResponseWatch, request: FastifyRequest, reply: FastifyReply): void {
  const name = Object.getOwnPropertySymbols(request).find(
    ({ description }) => description === "fastify.context",
  );
  const context: unknown = name && Reflect.get(request, name);
  if (name === undefined || typeof context !== "object" || context === null) return;
  const handler: unknown = Reflect.get(context, "handler");
  if (typeof handler !== "function") return;
  watch.beginsLater();
  const own: object = Object.create(context, {
    handler: {
      value: (...call: readonly unknown[]): unknown =>
        watched(watch, reply, () => Reflect.apply(handler, request.server, call)),
    },
  });
  Reflect.set(request, name, own);
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
