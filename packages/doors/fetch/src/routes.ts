import { type ReceivedRequest } from "@countersign/core";
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
} from "@countersign/core/door";
import { keyGuard, type OwnedRun } from "@countersign/idempotency-guard/door";
import type {
  DrainableMiddleware,
  IdempotencyGuardOptions,
  RequestIdempotency,
} from "@countersign/idempotency-guard";
import { assertPost, payoutOf, payoutReception, type Payout, type PayoutOptions } from "@countersign/payout";
import { readBody } from "@countersign/raw-body";
import { webhookReception, type WebhookOptions } from "@countersign/webhooks";
import { answerOf, refusalTable, refuse, repeatedResponse, type RefusalOptions } from "./answer.ts";
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

/** `payoutEndpoint` with its handler, for `fetch`. Throws a TypeError on a bad option. */
export function payoutRoute(options: PayoutRouteOptions, handler: PayoutHandler): DrainableRoute {
  const name = "payoutEndpoint";
  const factoryName = "payoutRoute";
  assertFunction(factoryName, "handler", handler);
  const [refusal, steps] = splitOptions(factoryName, refusalTable, options);
  const { receive, lookUp, drain, unauthorizedHeaders } = payoutReception<Request>(steps, {
    factory: factoryName,
    assertRoute: assertPost,
  });
  const refusing = { name, ...refusal, unauthorizedHeaders };
  const route: FetchRoute = async (request, info) => {
    const refused = (error: unknown): Promise<Response> => refuse(request, error, refusing);
    let run: OwnedRun;
    try {
      run = await receive(receivedRequest(request, info), request, (work) => work(request.signal));
    } catch (error) {
      return refused(error);
    }
    const pay = async (): Promise<Response> =>
      handler(request, {
        payout: lookUp === undefined ? payoutOf(request) : await lookUp(request),
        idempotency: run.handle,
      });
    return answerOf(run, pay, refused);
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

/** `idempotencyGuard` around a handler's Response; no `idempotency` for a request without a key. Throws a TypeError on a bad option. */
export function idempotentRoute(
  options: AlwaysOwned,
  handler: (request: Request, idempotency: RequestIdempotency) => Response | Promise<Response>,
): DrainableRoute;
export function idempotentRoute(
  options: IdempotentRouteOptions,
  handler: (request: Request, idempotency: RequestIdempotency | undefined) => Response | Promise<Response>,
): DrainableRoute;
export function idempotentRoute(
  options: IdempotentRouteOptions,
  handler: (request: Request, idempotency: never) => Response | Promise<Response>,
): DrainableRoute {
  const name = "idempotencyGuard";
  const factoryName = "idempotentRoute";
  assertFunction(factoryName, "handler", handler);
  const [{ limit: limitBytes, ...refusal }, keys] = splitOptions(factoryName, idempotentTable, options);
  const { admit, drain } = keyGuard<Request>(keys, factoryName);
  const handle = (
    request: Request,
    idempotency: RequestIdempotency | undefined,
  ): Response | Promise<Response> => Reflect.apply(handler, undefined, [request, idempotency]);
  const route: FetchRoute = async (request, info) => {
    const refused = (error: unknown): Promise<Response> => refuse(request, error, { name, ...refusal });
    let admission: Awaited<ReturnType<typeof admit>>;
    const steps = new Steps(request);
    try {
      steps.begin(name);
      const received = receivedRequest(request, info);
      await readBody(received, limitBytes);
      admission = await admit(request, (work) => work(request.signal));
      steps.end();
    } catch (thrown) {
      return refused(steps.refused(thrown));
    }
    if ("answer" in admission) return repeatedResponse(admission.answer);
    if ("passes" in admission) return handle(request, undefined);
    const { run } = admission;
    return answerOf(run, async () => handle(request, run.handle), refused);
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
    return handler(request, found);
  };
}

function readName(given: unknown, owner: OptionOwner, name: string): string {
  if (typeof given === "string" && given !== "") return given;
  throw optionError(owner, name, "a name for events and notices", given);
}
