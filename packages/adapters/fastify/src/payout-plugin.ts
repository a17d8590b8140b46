import { isGuardError, OptionError } from "@countersign/core";
import { option, splitOptions, type OptionTable } from "@countersign/core/internal";
import { whileConnected } from "@countersign/express/internal";
import type { TransactionMode } from "@countersign/idempotency";
import {
  admission,
  goOn,
  unpaidAnswers,
  watchOf,
  type Drainable,
} from "@countersign/idempotency-guard/internal";
import type { RequestIdempotency } from "@countersign/idempotency-guard";
import { payoutReception, type PayoutReception } from "countersign/internal";
import { payoutOf, type Payout, type PayoutOptions, type PayoutTransactionOptions } from "countersign/payout";
import type {
  FastifyPluginCallback,
  FastifyReply,
  FastifyRequest,
  RouteShorthandOptionsWithHandler,
} from "fastify";
import { refusal, step, takeOverReply, type RefusalOptions, type Refuse } from "./hooks.ts";
import { receivedRequest, warnOfTrust, type ConnectionOptions } from "./received-request.ts";
import {
  assertNotRegistered,
  idempotencyOf,
  leaveBodiesAlone,
  passageOf,
  routeTable,
  watched,
  watchReply,
  type RouteOption,
} from "./route-parts.ts";

export type DrainablePlugin = FastifyPluginCallback & Drainable;

interface PayoutRouteOptions extends ConnectionOptions, RefusalOptions {
  /** As the service calls it. */
  readonly url: string;
}

export interface PayoutTransactionPluginOptions<Tx, Mode extends TransactionMode>
  extends PayoutTransactionOptions<Tx, Mode, FastifyRequest>, PayoutRouteOptions {
  readonly handler?: undefined;
}

export interface PayoutPluginOptions extends PayoutOptions<FastifyRequest>, PayoutRouteOptions {
  /** Pays. Its answer is held back until the key is recorded as done. */
  readonly handler: (
    request: FastifyRequest,
    reply: FastifyReply,
    context: { readonly payout: Payout; readonly idempotency: RequestIdempotency },
  ) => unknown;
}

type Handler = PayoutPluginOptions["handler"];

const handlerRule = option.call<Handler>();

export const payoutTable = {
  ...routeTable,
  handler: option.optional(handlerRule, "required without pay"),
} satisfies OptionTable<Pick<PayoutPluginOptions, RouteOption | "handler">, unknown>;

const name = "payoutEndpoint";
const factory = "payoutPlugin";

/** `payoutEndpoint` for `fastify.register()`, with `stores` and `pay`, or with a handler. Throws a TypeError on a bad option. */
export function payoutPlugin<Tx = never, Mode extends TransactionMode = TransactionMode>(
  options: PayoutPluginOptions | PayoutTransactionPluginOptions<Tx, Mode>,
): DrainablePlugin {
  assertNotRegistered(factory, options);
  const [{ url, onReject, verdictId, handler, ...connection }, steps] = splitOptions(
    factory,
    payoutTable,
    options,
  );
  const reception = payoutReception<FastifyRequest>(steps, { factory });
  if (reception.givesTransaction && handler !== undefined) {
    throw new OptionError(factory, {
      option: "handler",
      what: "cannot be given beside pay: give one of them",
    });
  }
  const follows = reception.givesTransaction ? undefined : handlerRule.read(handler, factory, "handler");
  const route = payoutRoute(reception, follows, { connection, onReject, verdictId });
  const plugin: FastifyPluginCallback = (fastify, _options, done) => {
    warnOfTrust(fastify, factory, connection);
    leaveBodiesAlone(fastify);
    fastify.all(url, route);
    done();
  };
  return Object.assign(plugin, { drain: reception.drain });
}

interface Answers extends RefusalOptions {
  readonly connection: ConnectionOptions;
}

/** Pays, or claims the key, in the first hook. The handler follows where it is given. */
function payoutRoute(
  { receive, unauthorizedHeaders }: PayoutReception<FastifyRequest>,
  handler: Handler | undefined,
  { connection, ...answers }: Answers,
): Omit<RouteShorthandOptionsWithHandler, "schema"> {
  const pay = step(name, (request, reply) =>
    admission(request, (begin) =>
      receive(receivedRequest(request, connection), request, {
        begin,
        whileConnected: (work) => whileConnected(reply.raw, work),
      }),
    ),
  );
  const refuse = unpaidRefusal({ ...answers, unauthorizedHeaders });
  return {
    onRequest: (request, reply, next) =>
      pay(request, reply, {
        found(admitted) {
          if ("watch" in admitted) {
            // Hooks of the app follow, which may fail or respond.
            admitted.watch.beginsLater();
            watchReply(admitted.watch, reply);
          } else takeOverReply(reply);
          goOn(admitted, passageOf(request, reply, next));
        },
        refused: (error) => refuse(error, request, reply, next),
      }),
    // Fastify hands nothing from one of its phases to the next.
    handler: (request, reply) => {
      if (handler === undefined) return reply.callNotFound();
      const context = { payout: payoutOf(request), idempotency: idempotencyOf(request) };
      return watched(watchOf(request), reply, () => handler(request, reply, context));
    },
  };
}

/** Answers a refusal. Of an error that is left to the app: no answer of its error handler says "paid". */
function unpaidRefusal(options: Parameters<typeof refusal>[0]): Refuse {
  const refuse = refusal(options);
  return (error, request, reply, next) => {
    if (!isGuardError(error)) unpaidAnswers(reply.raw, error, true);
    refuse(error, request, reply, next);
  };
}
