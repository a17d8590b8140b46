import {
  chain,
  composedGuard,
  pathOf,
  receivedRequest,
  type ErrorMiddleware,
  type GuardRequest,
  type GuardResponse,
  type NextFunction,
} from "@countersign/express";
import { expressAdmission } from "@countersign/ip-allowlist";
import { expressHttps } from "./https-only.ts";
import { acknowledge } from "./receive-webhook.ts";
import { webhookReception, type WebhookDoor } from "./reception.ts";
import { ownAnswers, webhookErrors } from "./webhook-answers.ts";
import { factory, resolveEndpointOptions, type WebhookEndpointOptions } from "./webhook-endpoint-options.ts";

/** The middleware of a webhook endpoint. Without a router, as a listener of `node:http`, it needs no `next`. */
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
  const verify = composedGuard(factory, (req) => reception(receivedRequest(req), req));
  const receive = chain(factory, [verify, acknowledge], answerError);
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
