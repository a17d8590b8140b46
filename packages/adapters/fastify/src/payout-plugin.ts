import { isGuardError, OptionError } from "@countersign/core";
import { option, splitOptions, type OptionTable } from "@countersign/core/internal";
import { whileConnected } from "@countersign/express/internal";
import type { TransactionMode } from "@countersign/idempotency";
import {
  goOn,
  runOf,
  sendAnswer,
  unpaidAnswers,
  type KeyOwner,
} from "@countersign/idempotency-guard/internal";
import type { RequestIdempotency } from "@countersign/idempotency-guard";
import {
  payoutOf,
  payoutSteps,
  type Payout,
  type PayoutOptions,
  type PayoutTransactionOptions,
} from "countersign/payout";
import type {
  FastifyPluginCallback,
  FastifyReply,
  FastifyRequest,
  preHandlerHookHandler,
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

export type DrainablePlugin = FastifyPluginCallback & Pick<KeyOwner, "drain">;

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

type Form = ReturnType<typeof payoutSteps<FastifyRequest>>;
type Payment = Extract<Form, { readonly payment: unknown }>["payment"];
type Reception = Extract<Form, { readonly reception: unknown }>["reception"];

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
  const form = payoutSteps<FastifyRequest>(steps, { factory });
  if ("payment" in form && handler !== undefined) {
    throw new OptionError(factory, {
      option: "handler",
      what: "cannot be given beside pay: give one of them",
    });
  }
  const answers = { connection, onReject, verdictId };
  const { drain, ...route } =
    "payment" in form
      ? payingRoute(form.payment, answers)
      : handledRoute(form.reception, handlerRule.read(handler, factory, "handler"), answers);
  const plugin: FastifyPluginCallback = (fastify, _options, done) => {
    warnOfTrust(fastify, factory, connection);
    leaveBodiesAlone(fastify);
    fastify.all(url, route);
    done();
  };
  return Object.assign(plugin, { drain });
}

interface Answers extends RefusalOptions {
  readonly connection: ConnectionOptions;
}

type Route = Pick<KeyOwner, "drain"> & Omit<RouteShorthandOptionsWithHandler, "schema">;

/** Pays in the first hook; no handler follows. */
function payingRoute(
  { receive, drain, unauthorizedHeaders }: Payment,
  { connection, ...answers }: Answers,
): Route {
  const pay = step(name, (request, reply) =>
    receive(receivedRequest(request, connection), request, (work) => whileConnected(reply.raw, work)),
  );
  const refuse = unpaidRefusal({ ...answers, unauthorizedHeaders });
  return {
    drain,
    onRequest: (request, reply, next) =>
      pay(request, reply, {
        found(answer) {
          takeOverReply(reply);
          sendAnswer(reply.raw, answer);
        },
        refused: (error) => refuse(error, request, reply, next),
      }),
    handler: (_request, reply) => reply.callNotFound(),
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

/** Claims the key in the first hook; the handler follows. */
function handledRoute(
  { receive, lookUp, drain, unauthorizedHeaders }: Reception,
  handler: Handler,
  { connection, ...answers }: Answers,
): Route {
  const claim = step(name, (request, reply) =>
    receive(receivedRequest(request, connection), request, (work) => whileConnected(reply.raw, work)),
  );
  const business = lookUp && step(name, lookUp);
  const refuse = unpaidRefusal({ ...answers, unauthorizedHeaders });
  const preHandler: preHandlerHookHandler | undefined =
    business &&
    ((request, reply, next) =>
      business(request, reply, {
        found: () => next(),
        refused: (error) => refuse(error, request, reply, next),
      }));
  return {
    drain,
    onRequest: (request, reply, next) =>
      claim(request, reply, {
        found(run) {
          // Hooks of the app follow, which may fail or respond.
          run.beginsLater();
          watchReply(run, reply);
          goOn({ run }, passageOf(request, reply, next));
        },
        refused: (error) => refuse(error, request, reply, next),
      }),
    ...(preHandler && { preHandler }),
    // Fastify hands nothing from one of its phases to the next.
    handler: (request, reply) => {
      const context = { payout: payoutOf(request), idempotency: idempotencyOf(request) };
      return watched(runOf(request), reply, () => handler(request, reply, context));
    },
  };
}
