import {
  chain,
  withOwnOptionNames,
  type ErrorMiddleware,
  type GuardRequest,
  type GuardResponse,
  type Middleware,
  type NextFunction,
} from "@countersign/guard";
import { ipAllowlist } from "@countersign/ip-allowlist";
import { webhookBasicAuth } from "@countersign/webhook-basic-auth";
import { webhookHmac } from "@countersign/webhook-hmac";
import { httpsOnly } from "./https-only.ts";
import { hasRouter, isMountPath, isWithoutPath, type MountedRequest } from "./mount-path.ts";
import { ownAnswers } from "./own-answers.ts";
import { handleWebhook } from "./receive-webhook.ts";
import { webhookErrors } from "./webhook-errors.ts";
import {
  resolveOptions,
  type ResolvedOptions,
  type WebhookEndpointOptions,
} from "./webhook-endpoint-options.ts";
import { webhookRequest } from "./webhook-request.ts";

const factory = "webhookEndpoint";

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
  const resolved = resolveOptions(options);
  const answerError = part("guardErrors", () => webhookErrors(resolved.answers));
  const receive = chain(factory, parts(resolved), answerError);
  const warnWithoutPath = createWarnWithoutPath();
  return [
    function webhookEndpointMiddleware(req, res, next) {
      if (!hasRouter(req) || next === undefined) receive(req, res, ownAnswers(res));
      else if (isMountPath(req)) receive(req, res, leaving(req, next));
      else {
        warnWithoutPath(req);
        leaving(req, next)();
      }
    },
    // Express tells an error handler by its four parameters.
    function webhookEndpointErrorMiddleware(error, req, res, next) {
      if (!hasRouter(req)) answerError(error, req, res, ownAnswers(res));
      else if (isMountPath(req)) answerError(error, req, res, leaving(req, next));
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

function parts({
  https,
  addresses,
  basicAuth,
  hmac,
  handler,
  envelope,
}: ResolvedOptions): readonly Middleware[] {
  return [
    part("httpsOnly", () => httpsOnly(https)),
    ...(addresses === undefined ? [] : [part("ipAllowlist", () => ipAllowlist(addresses))]),
    part("webhookBasicAuth", () => webhookBasicAuth(basicAuth)),
    webhookRequest(),
    part("webhookHmac", () => webhookHmac(hmac)),
    ...handleWebhook(factory, handler, envelope),
  ];
}

const ownNames = {
  allow: "allowIps",
  dangerouslyAllowHttp: "https.dangerouslyAllowHttp",
  // Of httpsOnly alone: the endpoint has no status for the others.
  status: "https.status",
};

function part<T>(name: string, build: () => T): T {
  return withOwnOptionNames(factory, { factory: name, ownNames }, build);
}
