import { Readable } from "node:stream";
import {
  capturedRawBody,
  createWarnOnce,
  isPromiseLike,
  option,
  optionError,
  splitOptions,
  type OptionOwner,
  type OptionTable,
} from "@countersign/core/door";
import { whileConnected } from "@countersign/express/door";
import {
  beginHandler,
  goOn,
  keyGuard,
  runOf,
  type KeyOwner,
  type OwnedRun,
} from "@countersign/idempotency-guard/door";
import type { IdempotencyGuardOptions, RequestIdempotency } from "@countersign/idempotency-guard";
import { assertPost, payoutOf, payoutReception, type Payout, type PayoutOptions } from "@countersign/payout";
import { webhookReception, type WebhookOptions } from "@countersign/webhooks";
import type {
  FastifyInstance,
  FastifyPluginCallback,
  FastifyReply,
  FastifyRequest,
  preHandlerHookHandler,
} from "fastify";
import {
  errorOf,
  hiddenRefusal,
  hook,
  refusal,
  refusalTable,
  step,
  takeOverReply,
  type RefusalOptions,
} from "./hooks.ts";
import { asUnknownRoute, tellUnhidden } from "./hidden-route.ts";
import { connectionTable, receivedRequest, warnOfTrust, type ConnectionOptions } from "./received-request.ts";

export type DrainablePlugin = FastifyPluginCallback & Pick<KeyOwner, "drain">;

export interface PayoutPluginOptions
  extends PayoutOptions<FastifyRequest>, ConnectionOptions, RefusalOptions {
  /** As the service calls it. */
  readonly url: string;
  /** Pays. Its answer is held back until the key is recorded as done. */
  readonly handler: (
    request: FastifyRequest,
    reply: FastifyReply,
    context: { readonly payout: Payout; readonly idempotency: RequestIdempotency },
  ) => unknown;
}

type RouteOption = "url" | keyof RefusalOptions | keyof ConnectionOptions;

const routeTable = { ...refusalTable, ...connectionTable, url: option.own(readUrl) };

export const payoutTable = {
  ...routeTable,
  handler: option.call<PayoutPluginOptions["handler"]>(),
} satisfies OptionTable<Pick<PayoutPluginOptions, RouteOption | "handler">, unknown>;

/** `payoutEndpoint` with its handler, for `fastify.register()`. Throws a TypeError on a bad option. */
export function payoutPlugin(options: PayoutPluginOptions): DrainablePlugin {
  const name = "payoutEndpoint";
  const factoryName = "payoutPlugin";
  assertNotRegistered(factoryName, options);
  const [own, steps] = splitOptions(factoryName, payoutTable, options);
  const { url, onReject, verdictId, handler, ...connection } = own;
  const { receive, lookUp, drain, unauthorizedHeaders } = payoutReception<FastifyRequest>(steps, {
    factory: factoryName,
    assertRoute: assertPost,
  });
  const claim = step(name, (request, reply) =>
    receive(receivedRequest(request, connection), request, (work) => whileConnected(reply.raw, work)),
  );
  const business = lookUp && step(name, lookUp);
  const refuse = refusal({ onReject, verdictId, unauthorizedHeaders });
  const preHandler: preHandlerHookHandler | undefined =
    business &&
    ((request, reply, next) =>
      business(request, reply, {
        found: () => next(),
        refused: (error) => refuse(error, request, reply, next),
      }));
  const plugin: FastifyPluginCallback = (fastify, _options, done) => {
    warnOfTrust(fastify, factoryName, connection);
    leaveBodiesAlone(fastify);
    fastify.all(url, {
      onRequest: (request, reply, next) =>
        claim(request, reply, {
          found: (run) => beginHandler(run, passageOf(request, reply, next)),
          refused: (error) => refuse(error, request, reply, next),
        }),
      ...(preHandler && { preHandler }),
      // Fastify hands nothing from one of its phases to the next.
      handler: (request, reply) => {
        const context = { payout: payoutOf(request), idempotency: idempotencyOf(request) };
        return watched(runOf(request), reply, () => handler(request, reply, context));
      },
    });
    done();
  };
  return Object.assign(plugin, { drain });
}

export interface WebhookPluginOptions
  extends WebhookOptions<FastifyRequest>, ConnectionOptions, RefusalOptions {
  /** The path, itself a secret. */
  readonly url: string;
  /** Answers every refusal as the app's 404 of an unknown route; warns of what still differs. Default true. */
  readonly hide?: boolean | undefined;
}

export const webhookTable = {
  ...routeTable,
  hide: option.boolean(true),
} satisfies OptionTable<Pick<WebhookPluginOptions, RouteOption | "hide">, unknown>;

/** `webhookEndpoint`, for `fastify.register()`. Throws a TypeError on a bad option. */
export function webhookPlugin(options: WebhookPluginOptions): FastifyPluginCallback {
  const factoryName = "webhookPlugin";
  assertNotRegistered(factoryName, options);
  const [{ url, onReject, verdictId, hide, ...connection }, steps] = splitOptions(
    factoryName,
    webhookTable,
    options,
  );
  const receive = webhookReception<FastifyRequest>(steps, { factory: factoryName });
  const verify = hook("webhookEndpoint", (request) => receive(receivedRequest(request, connection), request));
  const refuse = hide ? hiddenRefusal({ onReject }) : refusal({ onReject, verdictId });
  const warnOnce = createWarnOnce(factoryName);
  return (fastify, _options, done) => {
    warnOfTrust(fastify, factoryName, connection);
    if (hide) fastify.addHook("onReady", (ready) => ready(tellUnhidden(fastify, url, warnOnce)));
    // An unknown route's body meets the app's parsers, and their refusals, before its 404; a type without one passes.
    if (!fastify.hasContentTypeParser("*")) fastify.addContentTypeParser("*", leaveAlone);
    fastify.all(url, {
      onRequest: (request, reply, next) =>
        verify(request, reply, (error) => {
          if (error === undefined) reply.code(200).send();
          else refuse(error, request, reply, next);
        }),
      preParsing: (request, _reply, payload, next) => {
        const bytes = capturedRawBody(request);
        next(null, bytes === undefined ? payload : Readable.from([bytes], { objectMode: false }));
      },
      handler: (_request, reply) => reply.callNotFound(),
      ...(hide && { errorHandler: asUnknownRoute(url) }),
    });
    done();
  };
}

export interface IdempotencyHookOptions extends IdempotencyGuardOptions<FastifyRequest>, RefusalOptions {}

/** `idempotencyGuard` as a route's `preHandler`, after its body's parser. Throws a TypeError on a bad option. */
export function idempotencyHook(
  options: IdempotencyHookOptions,
): preHandlerHookHandler & Pick<KeyOwner, "drain"> {
  const name = "idempotencyGuard";
  const factoryName = "idempotencyHook";
  const [answers, steps] = splitOptions(factoryName, refusalTable, options);
  const { admit, drain } = keyGuard<FastifyRequest>(steps, factoryName);
  const claim = step(name, async (request, reply) => {
    receivedRequest(request);
    const admission = await admit(request, (work) => whileConnected(reply.raw, work));
    if ("answer" in admission) takeOverReply(reply);
    return admission;
  });
  const refuse = refusal(answers);
  // Tools that inspect an app find it by this name.
  const idempotencyHookHandler: preHandlerHookHandler = (request, reply, next) =>
    claim(request, reply, {
      found: (admission) => goOn(admission, passageOf(request, reply, next)),
      refused: (error) => refuse(error, request, reply, next),
    });
  return Object.assign(idempotencyHookHandler, { drain });
}

/** The key's controls for a guarded request's handler. Throws an Error where no key was claimed. */
export function idempotencyOf(request: FastifyRequest): RequestIdempotency {
  const run = runOf(request);
  if (run === undefined) throw new Error("idempotencyOf: no key was claimed for this request");
  return run.handle;
}

function passageOf(
  { raw: req }: FastifyRequest,
  { raw: res }: FastifyReply,
  next: (error?: Error) => void,
): Parameters<typeof goOn>[1] {
  return { req, res, next: (fault) => next(errorOf(fault)) };
}

/** Calls a handler and watches its promise: a time-out may answer before that ends. */
function watched(run: OwnedRun | undefined, reply: FastifyReply, handler: () => unknown): unknown {
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
  return ended;
}

/** In the plugin's own scope: the checks read the bytes, and no parser of the app does. */
function leaveBodiesAlone(fastify: FastifyInstance): void {
  fastify.removeAllContentTypeParsers();
  fastify.addContentTypeParser("*", leaveAlone);
}

function leaveAlone(_request: FastifyRequest, _payload: unknown, done: (error: Error | null) => void): void {
  done(null);
}

/** Registered instead of its result, a factory would get the instance as options. */
function assertNotRegistered(factoryName: string, options: object): void {
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
