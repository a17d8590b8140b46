import { OptionError, type ReceivedRequest } from "@countersign/core";
import {
  assertFunction,
  limitRule,
  option,
  optionError,
  readOptions,
  splitOptions,
  type OptionOwner,
  type OptionTable,
  Steps,
} from "@countersign/core/internal";
import type { TransactionMode } from "@countersign/idempotency";
import { keyGuard } from "@countersign/idempotency-guard/internal";
import type {
  DrainableMiddleware,
  IdempotencyGuardOptions,
  IdempotencyTransactionOptions,
  RequestIdempotency,
} from "@countersign/idempotency-guard";
import { payoutReception } from "countersign/internal";
import { payoutOf, type Payout, type PayoutOptions, type PayoutTransactionOptions } from "countersign/payout";
import { readBody } from "@countersign/raw-body";
import { webhookReception, type WebhookOptions } from "countersign/webhooks";
import { handled, refusalTable, refuse, responseTo, type RefusalOptions } from "./answer.ts";
import { receivedRequest, type ConnectionInfo } from "./received-request.ts";

/** A route for any server that speaks `fetch`, whose router has chosen it by path. */
export type FetchRoute = (request: Request, info?: ConnectionInfo) => Promise<Response>;

export interface DrainableRoute extends FetchRoute, Pick<DrainableMiddleware, "drain"> {}

export interface PayoutRouteOptions extends PayoutOptions<Request>, RefusalOptions {}

/** Pays. Its answer is held back until the key is recorded as done. The body's bytes: core's `capturedRawBody(request)`. */
export type PayoutHandler = (
  request: Request,
  context: { readonly payout: Payout; readonly idempotency: RequestIdempotency },
) => Response | Promise<Response>;

const payoutName = "payoutEndpoint";

/** `payoutEndpoint` for `fetch`, with `stores` and `pay`, or with a handler. Throws a TypeError on a bad option. */
export function payoutRoute<Tx, Mode extends TransactionMode>(
  options: PayoutTransactionOptions<Tx, Mode, Request> & RefusalOptions,
): DrainableRoute;
export function payoutRoute(options: PayoutRouteOptions, handler: PayoutHandler): DrainableRoute;
export function payoutRoute(options: RefusalOptions, handler?: PayoutHandler): DrainableRoute {
  const factory = "payoutRoute";
  const [refusal, steps] = splitOptions(factory, refusalTable, options);
  const { givesTransaction, receive, drain, unauthorizedHeaders } = payoutReception<Request>(steps, {
    factory,
  });
  if (givesTransaction && handler !== undefined) {
    throw new OptionError(factory, { what: "takes stores and pay, or a handler, not both" });
  }
  if (!givesTransaction) assertFunction(factory, "handler", handler);
  const refusing = { name: payoutName, ...refusal, unauthorizedHeaders };
  const pay: PayoutHandler = (...call) => {
    assertFunction(factory, "handler", handler);
    return handler(...call);
  };
  const route: FetchRoute = async (request, info) => {
    const refused = (error: unknown): Promise<Response> => refuse(request, error, refusing);
    try {
      const received = receivedRequest(request, info);
      return await responseTo(
        (begin) => receive(received, request, { begin, whileConnected: (work) => work(request.signal) }),
        {
          request,
          refused,
          handler: async ({ handle: idempotency }) =>
            pay(request, { payout: payoutOf(request), idempotency }),
        },
      );
    } catch (error) {
      return refused(error);
    }
  };
  return Object.assign(route, { drain });
}

export interface WebhookRouteOptions extends WebhookOptions<Request>, RefusalOptions {
  /** Answers like an unknown route in place of every refusal, to hide the webhook; `false` shows refusals. Default: 404 without a body. */
  readonly hide?: ((request: Request) => Response | Promise<Response>) | false | undefined;
}

type Hide = NonNullable<WebhookRouteOptions["hide"]>;

const hideRule = option.call<Exclude<Hide, false>>(notFound, "404 without a body");

export const webhookTable = {
  ...refusalTable,
  hide: option.own<Hide>(
    (value, owner, name) => (value === false ? value : hideRule.read(value, owner, name)),
    hideRule.byDefault,
  ),
} satisfies OptionTable<Pick<WebhookRouteOptions, keyof RefusalOptions | "hide">, unknown>;

/** `webhookEndpoint` for `fetch`. Throws a TypeError on a bad option. */
export function webhookRoute(options: WebhookRouteOptions): FetchRoute {
  const name = "webhookEndpoint";
  const factoryName = "webhookRoute";
  const [{ hide, ...refusal }, steps] = splitOptions(factoryName, webhookTable, options);
  const receive = webhookReception<Request>(steps, { factory: factoryName });
  return async (request, info) => {
    try {
      await receive(receivedRequest(request, info), request);
      return new Response(null, { status: 200 });
    } catch (error) {
      const hidden = hide === false ? undefined : () => hide(request);
      return await refuse(request, error, { name, ...refusal, hide: hidden });
    }
  };
}

function notFound(): Response {
  return new Response(null, { status: 404 });
}

export interface IdempotentRouteOptions extends IdempotencyGuardOptions<Request>, RefusalOptions {
  /** The largest body, in bytes or like `"100kb"`. Default 100 kB. */
  readonly limit?: number | string | undefined;
}

export const idempotentTable = {
  ...refusalTable,
  limit: limitRule(),
} satisfies OptionTable<Pick<IdempotentRouteOptions, keyof RefusalOptions | "limit">, unknown>;

/** Options by which every request that reaches the handler owns a key. */
type AlwaysOwned = IdempotentRouteOptions & {
  readonly methods?: undefined;
  readonly required?: true | undefined;
};

/** The form with a transaction, which answers every request. */
type AlwaysPaid<Tx, Mode extends TransactionMode> = IdempotencyTransactionOptions<Tx, Mode, Request> &
  RefusalOptions &
  Pick<IdempotentRouteOptions, "limit"> & {
    readonly methods?: undefined;
    readonly required?: true | undefined;
  };

// A handler that never runs, and a request that passes to none, are each somebody's mistake.
function assertAlwaysPaid(factoryName: string, options: object, handler: unknown): void {
  if (handler !== undefined)
    throw new OptionError(factoryName, { what: "takes stores and handle, or a handler, not both" });
  for (const name of ["methods", "required"]) {
    if ([undefined, true].includes(Reflect.get(options, name))) continue;
    const what = "cannot be set beside handle, since nothing follows: route what is exempt elsewhere";
    throw new OptionError(factoryName, { option: name, what });
  }
}

/** `idempotencyGuard` around a handler's Response; no `idempotency` for a request without a key. Throws a TypeError on a bad option. */
export function idempotentRoute<Tx, Mode extends TransactionMode>(
  options: AlwaysPaid<Tx, Mode>,
): DrainableRoute;
export function idempotentRoute(
  options: AlwaysOwned,
  handler: (request: Request, idempotency: RequestIdempotency) => Response | Promise<Response>,
): DrainableRoute;
export function idempotentRoute(
  options: IdempotentRouteOptions,
  handler: (request: Request, idempotency: RequestIdempotency | undefined) => Response | Promise<Response>,
): DrainableRoute;
export function idempotentRoute(
  options: Omit<IdempotentRouteOptions, keyof IdempotencyGuardOptions>,
  handler?: (request: Request, idempotency: never) => Response | Promise<Response>,
): DrainableRoute {
  const name = "idempotencyGuard";
  const factoryName = "idempotentRoute";
  const [{ limit: limitBytes, ...refusal }, keys] = splitOptions(factoryName, idempotentTable, options);
  const { givesTransaction, perform, drain } = keyGuard<Request>(keys, factoryName);
  if (givesTransaction) assertAlwaysPaid(factoryName, keys, handler);
  else assertFunction(factoryName, "handler", handler);
  const handle = async (request: Request, idempotency: RequestIdempotency | undefined): Promise<Response> => {
    assertFunction(factoryName, "handler", handler);
    return Reflect.apply(handler, undefined, [request, idempotency]);
  };
  const route: FetchRoute = async (request, info) => {
    const refused = (error: unknown): Promise<Response> => refuse(request, error, { name, ...refusal });
    const steps = new Steps(request);
    let hasPassed = false;
    const passed = (): void => {
      if (!hasPassed) steps.end();
      hasPassed = true;
    };
    let response: Response | undefined;
    try {
      steps.begin(name);
      await readBody(receivedRequest(request, info), limitBytes);
      response = await responseTo(
        (begin) =>
          perform(request, {
            begin: (owned) => {
              passed();
              return begin(owned);
            },
            whileConnected: (work) => work(request.signal),
          }),
        { request, refused, handler: (owned) => handle(request, owned.handle) },
      );
      passed();
    } catch (thrown) {
      return refused(steps.refused(thrown));
    }
    return response ?? handled(request, () => handle(request, undefined), { name, ...refusal });
  };
  return Object.assign(route, { drain });
}

export interface CheckedRouteOptions extends RefusalOptions {
  readonly name: string;
}

export const checkedTable = {
  ...refusalTable,
  name: option.own(readName),
} satisfies OptionTable<CheckedRouteOptions, unknown>;

/** Runs a handler with the result of `check`, such as `httpSignatureVerifier(options)`. Throws a TypeError on a bad option. */
export function checkedRoute<Found>(
  options: CheckedRouteOptions,
  check: (received: ReceivedRequest, request: Request) => Found | Promise<Found>,
  handler: (request: Request, found: Found) => Response | Promise<Response>,
): FetchRoute {
  const { name } = readOptions("checkedRoute", checkedTable, options);
  return async (request, info) => {
    let found: Found;
    const steps = new Steps(request);
    try {
      steps.begin(name);
      found = await check(receivedRequest(request, info), request);
      steps.end();
    } catch (thrown) {
      return refuse(request, steps.refused(thrown), options);
    }
    return handled(request, () => handler(request, found), options);
  };
}

function readName(given: unknown, owner: OptionOwner, name: string): string {
  if (typeof given === "string" && given !== "") return given;
  throw optionError(owner, name, "a name for events and notices", given);
}
