import { isGuardError, quoteForLog } from "@countersign/core";
import {
  createWarnOnce,
  option,
  readOptions,
  splitOptions,
  type OptionOwner,
  type OptionTable,
} from "@countersign/core/internal";
import { assertLastOnRoute, chain, composedGuard, pathOf, proxyTrust } from "@countersign/express/internal";
import {
  guard,
  guardErrors,
  receivedRequest,
  type ErrorMiddleware,
  type GuardRequest,
  type GuardResponse,
  type Middleware,
  type NextFunction,
  type GuardErrorsOptions,
} from "@countersign/express";
import { expressAdmission } from "@countersign/ip-allowlist";
import { envelopeTable, type WebhookEnvelopeOptions } from "../envelope/envelope.ts";
import type { WebhookHandler } from "../events/webhook-handler-types.ts";
import {
  assertWebhookRequest,
  eventReceiver,
  webhookReception,
  type WebhookAdapter,
  httpsAdmission,
} from "./reception.ts";
import {
  factoryName,
  httpsFactory,
  readHandler,
  type WebhookOptions as OptionsOf,
  type HttpsOnlyOptions,
} from "./webhook-endpoint-options.ts";

// What a webhook endpoint needs beside it, for projects in which only direct dependencies can be imported (pnpm).
export { gracefulClose, type ErrorMiddleware, type Middleware } from "@countersign/express";

/** What a webhook has to satisfy, at any adapter. `Native` is the request of the framework. */
export type WebhookOptions<Native = GuardRequest> = OptionsOf<Native>;

export interface WebhookEndpointOptions extends WebhookOptions {
  /** Answer every rejection as the app's own 404 of an unknown route. Default true. */
  readonly hide?: boolean | undefined;
  /** Called once for each rejection, before the answer; for the log. Its own throw becomes a process warning. */
  readonly onReject?: GuardErrorsOptions["onReject"];
}

export const answersTable = {
  hide: option.boolean(true),
  onReject: option.optional(option.call<NonNullable<GuardErrorsOptions["onReject"]>>()),
} satisfies OptionTable<Omit<WebhookEndpointOptions, keyof WebhookOptions>, unknown>;

/** The middleware of a webhook endpoint. Without a router, as a listener of `node:http`, it needs no `next`. */
export type WebhookEndpointMiddleware = (req: GuardRequest, res: GuardResponse, next?: NextFunction) => void;

/**
 * Verifies webhooks and handles their events: `app.use(path, webhookEndpoint(options))`. Answers every method of that path, refusals as the
 * app's own 404 unless `hide` is false. The second middleware takes the errors of what ran before, such as a body parser. Without a router
 * the first one answers everything, a hidden refusal with a bare 404, and never calls `next`. Throws a TypeError on a bad option.
 */
export function webhookEndpoint(
  options: WebhookEndpointOptions,
): [WebhookEndpointMiddleware, ErrorMiddleware] {
  const [answers, steps] = splitOptions(factoryName, answersTable, options);
  const answerError = webhookErrors(answers);
  const reception = webhookReception(steps, adapter);
  const verify = composedGuard(factoryName, (req) => reception(receivedRequest(req), req));
  const receive = chain(factoryName, [verify, acknowledge], answerError);
  const warnOfNoPath = createWarning("has no path of its own and checks no request but those for /");
  const warnOfMethods = createWarning(
    "stands in a route of some methods, whose OPTIONS shows the hidden path",
  );
  return [
    function webhookEndpointMiddleware(req, res, next) {
      if (!hasRouter(req) || next === undefined) receive(req, res, ownAnswers(res));
      else if (mayBeMountPath(req)) {
        if (answers.hide && leavesOptions(req, webhookEndpointMiddleware)) warnOfMethods();
        receive(req, res, leaving(req, next));
      } else {
        if (isWithoutPath(req)) warnOfNoPath();
        leaving(req, next)();
      }
    },
    // Express tells an error handler by its four parameters.
    function webhookEndpointErrorMiddleware(error, req, res, next) {
      if (!hasRouter(req)) answerError(error, req, res, ownAnswers(res));
      else if (mayBeMountPath(req)) answerError(error, req, res, leaving(req, next));
      else next(error);
    },
  ];
}

/** `next`, but past the handlers after the endpoint in its own route: the request was not let pass. */
function leaving({ route, baseUrl }: MountedRequest, next: NextFunction): NextFunction {
  // Only Express knows `next("route")`.
  if (route === undefined || typeof baseUrl !== "string") return next;
  return (error) => next(error ?? "route");
}

/** Warns once. */
function createWarning(what: string): () => void {
  let warned = false;
  return () => {
    if (warned) return;
    warned = true;
    process.emitWarning(`webhookEndpoint ${what}: write app.use(path, webhookEndpoint(...))`);
  };
}

const adapter: WebhookAdapter<GuardRequest> = {
  https: expressHttps,
  admission: expressAdmission,
  show: (req, { credential, payload }) => {
    const webhook = { ...req.webhook };
    if (credential !== undefined) webhook.credentialIndex = credential.index;
    if (payload !== undefined) webhook.secretIndex = payload.secretIndex;
    req.webhook = webhook;
  },
};

type MountedRequest = GuardRequest & {
  /** What Express stripped from `url`. */
  readonly baseUrl?: unknown;
  /** Express's route that matched last, even after it ended. */
  readonly route?:
    | {
        readonly path?: unknown;
        readonly methods?: Readonly<Record<string, unknown>> | undefined;
        readonly stack?: readonly { readonly handle?: unknown }[] | undefined;
      }
    | undefined;
};

/** Whether the request passed a router: Express, or one that sets `originalUrl`, as connect does. */
function hasRouter({ originalUrl, baseUrl }: MountedRequest): boolean {
  return typeof originalUrl === "string" || typeof baseUrl === "string";
}

/** Whether the request may be for the very mount path: `/` after `app.use`, or matched by a route. Never for absolute-form targets. */
function mayBeMountPath(req: MountedRequest): boolean {
  const path = pathOf(req.url ?? "/");
  if (path === "/") return true;
  const routed = [req.route?.path].flat();
  if (routed.includes(path)) return true;
  // The pattern may be an earlier route's: better check a request of another route than let one of the endpoint pass.
  return path.startsWith("/") && !routed.every(isPlainPath);
}

/** Whether the endpoint was mounted without a path, and so gets every request of the app. */
function isWithoutPath(req: MountedRequest): boolean {
  return req.route === undefined && req.originalUrl === req.url && pathOf(req.url ?? "/") !== "/";
}

/** Whether the endpoint's own route leaves OPTIONS to Express, which answers with the route's methods. */
function leavesOptions({ route }: MountedRequest, endpoint: WebhookEndpointMiddleware): boolean {
  // req.route may be an earlier one.
  if (route?.stack?.some(({ handle }) => handle === endpoint) !== true) return false;
  return route.methods?.["_all"] !== true && route.methods?.["options"] !== true;
}

// Text that is no pattern, in Express 4 and 5.
function isPlainPath(path: unknown): boolean {
  return path === undefined || (typeof path === "string" && /^[A-Za-z0-9/._~-]*$/.test(path));
}

/** `guardErrors`, plus a process warning for the first 500 of each code without `onReject`: hidden, a mistake would leave no trace. */
function webhookErrors(options: GuardErrorsOptions): ErrorMiddleware {
  const answer = guardErrors(options);
  if (options.hide !== true || options.onReject !== undefined) return answer;
  const warned = new Set<string>();
  return (error, req, res, next) => {
    // Other statuses are faults of the caller, or of a store, which has notices of its own.
    if (isGuardError(error) && error.status === 500 && !warned.has(error.code)) {
      warned.add(error.code);
      process.emitWarning(
        `webhookEndpoint hid an error of its configuration: ${error.code}: ${error.message}`,
      );
    }
    answer(error, req, res, next);
  };
}

/** Replaces `next` without a router, where `next()` would pass for "verified": a bare 404, or a bare 500 and a process warning. */
function ownAnswers(res: GuardResponse): NextFunction {
  return (error) => {
    const failed = error !== undefined && error !== null;
    if (failed) {
      const text = error instanceof Error ? quoteForLog(`${error.name}: ${error.message}`, 200) : "no Error";
      process.emitWarning(`webhookEndpoint failed: ${text}`);
    }
    if (res.headersSent) {
      if (!res.writableEnded) res.destroy();
      return;
    }
    res.statusCode = failed ? 500 : 404;
    res.end();
  };
}

/**
 * Refuses requests without HTTPS (spec, "Calls from the service to a webhook endpoint") with 403 `https-required`. HTTPS is a TLS socket,
 * or one X-Forwarded-Proto line, exactly `https`, from a peer that `trust proxy` trusts; that line counts on TLS too. While the setting
 * trusts everybody: 500 `trust-proxy-unsafe`. Throws a TypeError on a bad option.
 */
export function httpsOnly(options: HttpsOnlyOptions = {}): Middleware {
  return guard(httpsFactory, expressHttps(options));
}

function expressHttps(
  options: HttpsOnlyOptions,
  owner: OptionOwner = httpsFactory,
): (req: GuardRequest) => void {
  const admit = httpsAdmission(options, owner);
  const inspectTrust = proxyTrust.inspector(createWarnOnce(httpsFactory));
  return (req) => admit(() => (proxyTrust.isHttps(req, inspectTrust(req)) ? "https" : "http"));
}

/**
 * Handles a webhook that `webhookHmac` has verified before: POST and JSON only, the envelope, then its events. Answers an empty 200 when
 * all are done, otherwise 503 for a retry. Throws a TypeError on a bad option, or a handler not from `createWebhookHandler`.
 */
export function receiveWebhook(
  handler: WebhookHandler<unknown>,
  options: WebhookEnvelopeOptions = {},
): Middleware {
  const name = "receiveWebhook";
  const { maxEvents } = readOptions(name, envelopeTable, options);
  const receive = eventReceiver(readHandler(handler, name, "handler"), maxEvents);
  const middleware: Middleware = chain(name, [
    guard("webhookRequest", (req) => {
      assertLastOnRoute(req, { own: middleware, called: `${name}()`, isLast: true });
      assertWebhookRequest(receivedRequest(req));
    }),
    guard(name, (req) => receive(req)),
    acknowledge,
  ]);
  return middleware;
}

const acknowledge: Middleware = (_req, res, next) => {
  // The app's own time-out may have answered in the meantime.
  if (res.headersSent) return;
  // Not assigned if it is 200 already: V8 pays for an own property.
  if (res.statusCode !== 200) res.statusCode = 200;
  try {
    res.end();
  } catch (error) {
    // A wrapper of the app's threw. This runs in a promise: Express would not see it, and the process would end.
    next(error);
  }
};
