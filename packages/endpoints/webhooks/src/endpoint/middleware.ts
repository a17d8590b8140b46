import { isGuardError, quoteForLog } from "@countersign/core";
import {
  assertKnownOptions,
  createWarnOnce,
  option,
  readOptions,
  type OptionOwner,
  type OptionTable,
} from "@countersign/core/door";
import { chain, composedGuard, createTrustInspector, isHttps, pathOf } from "@countersign/express/door";
import {
  guard,
  guardErrors,
  receivedRequest,
  type ErrorMiddleware,
  type GuardErrorsOptions,
  type GuardRequest,
  type GuardResponse,
  type Middleware,
  type NextFunction,
} from "@countersign/express";
import { expressAdmission } from "@countersign/ip-allowlist";
import { envelopeTable, type WebhookEnvelopeOptions } from "../envelope/envelope.ts";
import type { WebhookHandler } from "../events/webhook-handler-types.ts";
import {
  assertWebhookRequest,
  eventReceiver,
  webhookReception,
  type WebhookDoor,
  httpsAdmission,
} from "./reception.ts";
import {
  factoryName,
  readHandler,
  table,
  type WebhookOptions as OptionsOf,
  httpsFactory,
  type HttpsOnlyOptions,
} from "./webhook-endpoint-options.ts";

// What a webhook endpoint needs beside it, for projects in which only direct dependencies can be imported (pnpm).
export { gracefulClose, type ErrorMiddleware, type Middleware } from "@countersign/express";

/** What a webhook has to satisfy, at any door. `Native` is the request of the framework. */
export type WebhookOptions<Native = GuardRequest> = OptionsOf<Native>;

/** Options of `webhookEndpoint`, the door to Express. */
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

/** The middleware of a webhook endpoint./** The middleware of a webhook endpoint. Without a router, as a listener of `node:http`, it needs no `next`. */
export type WebhookEndpointMiddleware = (req: GuardRequest, res: GuardResponse, next?: NextFunction) => void;

/**
 * Everything between the wire and the events of a webhook: `app.use(path, webhookEndpoint(options))`. Answers every method of
 * that path, and hides behind the app's own 404 of an unknown route unless `hide` is false. The second middleware takes the
 * errors of what ran before, such as a body parser. Called by hand, without a router, the first one checks every request and
 * answers it, a hidden refusal with a bare 404: `next` is never called there. Throws a TypeError on a bad option.
 */
export function webhookEndpoint(
  options: WebhookEndpointOptions,
): [WebhookEndpointMiddleware, ErrorMiddleware] {
  const { steps, answers } = resolveEndpointOptions(options);
  const answerError = webhookErrors(answers);
  const reception = webhookReception(steps, door);
  const verify = composedGuard(factoryName, (req) => reception(receivedRequest(req), req));
  const receive = chain(factoryName, [verify, acknowledge], answerError);
  const warnWithoutPath = createWarnWithoutPath();
  return [
    function webhookEndpointMiddleware(req, res, next) {
      if (!hasRouter(req) || next === undefined) receive(req, res, ownAnswers(res));
      else if (mayBeMountPath(req)) receive(req, res, leaving(req, next));
      else {
        warnWithoutPath(req);
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

/** `next`, but past the handlers that stand behind the endpoint in its own route: nobody has let the request pass. */
function leaving({ route, baseUrl }: MountedRequest, next: NextFunction): NextFunction {
  // Only Express knows the word.
  if (route === undefined || typeof baseUrl !== "string") return next;
  return (error) => next(error ?? "route");
}

function createWarnWithoutPath(): (req: MountedRequest) => void {
  let warned = false;
  return (req) => {
    if (warned || !isWithoutPath(req)) return;
    warned = true;
    process.emitWarning(
      "webhookEndpoint has no path of its own and checks no request but those for /: write app.use(path, webhookEndpoint(...))",
    );
  };
}

const door: WebhookDoor<GuardRequest> = {
  https: (options, owner) => {
    const admit = expressHttps(options, owner);
    return (_request, req) => admit(req);
  },
  admission: (addresses, owner) => {
    const admit = expressAdmission(addresses, owner);
    return (_request, req) => admit(req);
  },
  show: (req, { credential, payload }) => {
    const webhook = { ...req.webhook };
    if (credential !== undefined) webhook.credentialIndex = credential.index;
    if (payload !== undefined) webhook.secretIndex = payload.secretIndex;
    req.webhook = webhook;
  },
};

/** A request as a router leaves it. */
type MountedRequest = GuardRequest & {
  /** What was stripped from `url`; Express alone. */
  readonly baseUrl?: unknown;
  /** What Express notes about the route that matched last, also when that one is over. */
  readonly route?: { readonly path?: unknown } | undefined;
};

/** Whether a router brought the request: Express, or one that keeps `originalUrl` while it strips the mount path, as connect does. */
function hasRouter({ originalUrl, baseUrl }: MountedRequest): boolean {
  return typeof originalUrl === "string" || typeof baseUrl === "string";
}

/**
 * Whether the request is, or may be, for the very path of the endpoint and none below it; `isMountPath` of express says no in
 * doubt. `app.use` strips its path and leaves `/`; a route leaves the path: a plain one is here compared by letter case too, a
 * pattern has matched. Absolute-form targets are none.
 */
function mayBeMountPath(req: MountedRequest): boolean {
  const path = pathOf(req.url ?? "/");
  if (path === "/") return true;
  const routed = [req.route?.path].flat();
  if (routed.includes(path)) return true;
  // A pattern that may be of an earlier route: to check what is not for the endpoint beats to let pass what is.
  return path.startsWith("/") && !routed.every(isPlainPath);
}

/** Whether the endpoint was mounted without a path, and so stands before every request of the app. */
function isWithoutPath(req: MountedRequest): boolean {
  return req.route === undefined && req.originalUrl === req.url && pathOf(req.url ?? "/") !== "/";
}

// What neither Express 4 nor 5 takes for more than itself.
function isPlainPath(path: unknown): boolean {
  return path === undefined || (typeof path === "string" && /^[A-Za-z0-9/._~-]*$/.test(path));
}

/** Tells the options of the Express door from those of the steps. Throws an OptionError. */
function resolveEndpointOptions(options: WebhookEndpointOptions): {
  readonly steps: WebhookOptions;
  readonly answers: Required<Pick<GuardErrorsOptions, "hide">> & Pick<GuardErrorsOptions, "onReject">;
} {
  assertKnownOptions(factoryName, options, Object.keys({ ...table, ...answersTable }));
  const { hide, onReject, ...steps } = options;
  return { steps, answers: readOptions(factoryName, answersTable, { hide, onReject }) };
}

/**
 * `guardErrors` for a webhook endpoint. Hidden, a mistake of the app's own configuration would be a 404 without a trace: without
 * `onReject` its first occurrence becomes a process warning.
 */
function webhookErrors(options: GuardErrorsOptions): ErrorMiddleware {
  const answer = guardErrors(options);
  if (options.hide !== true) return answer;
  const warnOnce = options.onReject === undefined ? warnOfHidden() : undefined;
  return (error, req, res, next) => {
    warnOnce?.(error);
    answer(error, req, res, next);
  };
}

function warnOfHidden(): (error: unknown) => void {
  const warned = new Set<string>();
  return (error) => {
    // All other codes are the caller's fault, or of a store, which has notices of its own.
    if (!isGuardError(error) || error.status !== 500 || warned.has(error.code)) return;
    warned.add(error.code);
    process.emitWarning(`webhookEndpoint hid an error of its configuration: ${error.code}: ${error.message}`);
  };
}

/**
 * Takes the place of `next` where no router can answer instead: whoever calls the endpoint by hand would take its `next()` for
 * "verified". A refusal is a bare 404, an error that nobody expected a bare 500 and a process warning.
 */
function ownAnswers(res: GuardResponse): NextFunction {
  return (error) => {
    if (error !== undefined && error !== null) warn(error);
    if (res.headersSent) {
      if (!res.writableEnded) res.destroy();
      return;
    }
    res.statusCode = error === undefined || error === null ? 404 : 500;
    res.end();
  };
}

function warn(error: unknown): void {
  const text = error instanceof Error ? quoteForLog(`${error.name}: ${error.message}`, 200) : "no Error";
  process.emitWarning(`webhookEndpoint failed: ${text}`);
}

/**
 * Admits requests that came over HTTPS (spec, "Calls from the service to a webhook endpoint"), and refuses all others with 403
 * `https-required`. HTTPS is a TLS socket, or one X-Forwarded-Proto line that is exactly `https` from a peer that the app's
 * `trust proxy` setting trusts; what such a peer says also counts when its own connection is TLS. Refuses everything with 500
 * `trust-proxy-unsafe` while that setting trusts everybody, as ipAllowlist does. Throws a TypeError on a bad option.
 */
export function httpsOnly(options: HttpsOnlyOptions = {}): Middleware {
  return guard(httpsFactory, expressHttps(options));
}

/** The check of {@link httpsOnly}, for an endpoint that is made of several: `owner` has the options, in messages. */
function expressHttps(
  options: HttpsOnlyOptions,
  owner: OptionOwner = httpsFactory,
): (req: GuardRequest) => void {
  const admit = httpsAdmission(options, owner);
  const inspectTrust = createTrustInspector(createWarnOnce(httpsFactory));
  return (req) => admit(() => (isHttps(req, inspectTrust(req)) ? "https" : "http"));
}

/**
 * Handles a webhook that `webhookHmac` has verified, which must run before it: POST and JSON alone, then the envelope, then
 * its events. Answers 200 with an empty body when every event is done, and 503 otherwise, so that the service brings it back.
 * Throws a TypeError on a bad option, and unless `handler` is from `createWebhookHandler`.
 */
export function receiveWebhook(handler: WebhookHandler, options: WebhookEnvelopeOptions = {}): Middleware {
  const name = "receiveWebhook";
  const { maxEvents } = readOptions(name, envelopeTable, options);
  const receive = eventReceiver(readHandler(handler, name, "handler"), maxEvents);
  return chain(name, [
    guard("webhookRequest", (req) => assertWebhookRequest(receivedRequest(req))),
    guard(name, (req) => receive(req)),
    acknowledge,
  ]);
}

/** The answer to a webhook of which every event is done. */
const acknowledge: Middleware = (_req, res, next) => {
  // A middleware of the app with a time-out of its own may have answered in the meantime.
  if (res.headersSent) return;
  // 200 until somebody changed it: V8 pays for a property of its own that says the same.
  if (res.statusCode !== 200) res.statusCode = 200;
  try {
    res.end();
  } catch (error) {
    // What the app has hung on the response threw. Behind a promise Express would not see it, and the process would end.
    next(error);
  }
};
