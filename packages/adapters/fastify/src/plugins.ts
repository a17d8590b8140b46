import { createWarnOnce, option, splitOptions, type OptionTable } from "@countersign/core/internal";
import { whileConnected } from "@countersign/express/internal";
import type { TransactionMode } from "@countersign/idempotency";
import {
  admission,
  goOn,
  keyGuard,
  unpaidAnswers,
  type Drainable,
} from "@countersign/idempotency-guard/internal";
import type { IdempotencyGuardOptions, IdempotencyTransactionOptions } from "@countersign/idempotency-guard";
import { webhookReception, type WebhookOptions } from "countersign/webhooks";
import type { FastifyPluginCallback, FastifyRequest, preHandlerHookHandler } from "fastify";
import {
  checkHook,
  hiddenRefusal,
  refusal,
  refusalTable,
  step,
  takeOverReply,
  type RefusalOptions,
} from "./hooks.ts";
import { asUnknownRoute, tellUnhidden } from "./hidden-route.ts";
import { receivedRequest, warnOfTrust, type ConnectionOptions } from "./received-request.ts";
import {
  assertNotRegistered,
  leaveAlone,
  passageOf,
  routeTable,
  watchHandler,
  watchReply,
  type RouteOption,
} from "./route-parts.ts";

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
  const verify = checkHook("webhookEndpoint", (request) =>
    receive(receivedRequest(request, connection), request),
  );
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
      handler: (_request, reply) => reply.callNotFound(),
      ...(hide && { errorHandler: asUnknownRoute(url) }),
    });
    done();
  };
}

export interface IdempotencyHookOptions extends IdempotencyGuardOptions<FastifyRequest>, RefusalOptions {}

/** `idempotencyGuard` as a route's `preHandler`, after its body's parser. Throws a TypeError on a bad option. */
export function idempotencyHook<Tx = never, Mode extends TransactionMode = TransactionMode>(
  options:
    | IdempotencyHookOptions
    | (IdempotencyTransactionOptions<Tx, Mode, FastifyRequest> & RefusalOptions),
): preHandlerHookHandler & Drainable {
  const name = "idempotencyGuard";
  const factoryName = "idempotencyHook";
  const [answers, steps] = splitOptions(factoryName, refusalTable, options);
  const { perform, drain, reserved } = keyGuard<FastifyRequest>(steps, factoryName);
  const claim = step(name, async (request, reply) => {
    receivedRequest(request);
    const admitted = await admission(request, (begin) =>
      perform(request, { begin, whileConnected: (work) => whileConnected(reply.raw, work) }),
    );
    if ("response" in admitted) takeOverReply(reply);
    return admitted;
  });
  const refuse = refusal(answers);
  // Tools that inspect an app find it by this name.
  const idempotencyHookHandler: preHandlerHookHandler = (request, reply, next) =>
    claim(request, reply, {
      found(admitted) {
        if ("watch" in admitted) {
          watchReply(admitted.watch, reply);
          watchHandler(admitted.watch, request, reply);
        }
        goOn(admitted, passageOf(request, reply, next));
      },
      refused(error) {
        unpaidAnswers(reply.raw, error, reserved);
        refuse(error, request, reply, next);
      },
    });
  return Object.assign(idempotencyHookHandler, { drain });
}
