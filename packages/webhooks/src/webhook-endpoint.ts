import { chain, withOwnOptionNames, type ErrorMiddleware, type Middleware } from "@countersign/guard";
import { ipAllowlist } from "@countersign/ip-allowlist";
import { webhookBasicAuth } from "@countersign/webhook-basic-auth";
import { webhookHmac } from "@countersign/webhook-hmac";
import { httpsOnly } from "./https-only.ts";
import { isMountPath } from "./mount-path.ts";
import { handleWebhook } from "./receive-webhook.ts";
import { webhookErrors } from "./webhook-errors.ts";
import {
  resolveOptions,
  type ResolvedOptions,
  type WebhookEndpointOptions,
} from "./webhook-endpoint-options.ts";
import { webhookRequest } from "./webhook-request.ts";

const factory = "webhookEndpoint";

/**
 * Everything between the wire and the events of a webhook: `app.use(path, webhookEndpoint(options))`. Answers every method of
 * that path, and hides behind the app's own 404 of an unknown route unless `hide` is false. The second middleware takes the
 * errors of what ran before, such as a body parser. Throws a TypeError on a bad option.
 */
export function webhookEndpoint(options: WebhookEndpointOptions): [Middleware, ErrorMiddleware] {
  const resolved = resolveOptions(options);
  const answerError = part("guardErrors", () => webhookErrors(resolved.answers));
  const receive = chain(factory, parts(resolved), answerError);
  return [
    function webhookEndpointMiddleware(req, res, next) {
      if (isMountPath(req)) receive(req, res, next);
      else next();
    },
    // Express tells an error handler by its four parameters.
    function webhookEndpointErrorMiddleware(error, req, res, next) {
      if (isMountPath(req)) answerError(error, req, res, next);
      else next(error);
    },
  ];
}

function parts({ https, addresses, basicAuth, hmac, handler }: ResolvedOptions): readonly Middleware[] {
  return [
    part("httpsOnly", () => httpsOnly(https)),
    ...(addresses === undefined ? [] : [part("ipAllowlist", () => ipAllowlist(addresses))]),
    part("webhookBasicAuth", () => webhookBasicAuth(basicAuth)),
    webhookRequest(),
    part("webhookHmac", () => webhookHmac(hmac)),
    ...handleWebhook(factory, handler),
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
