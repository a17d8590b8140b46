import { GuardError, guard, type Middleware } from "@countersign/guard";
import { fieldLines, isJsonMediaType } from "@countersign/raw-body";

/** Admits POST with a body of JSON alone (spec, "Webhook receiver"), and refuses the rest before the body is read. */
export function webhookRequest(): Middleware {
  return guard("webhookRequest", (req) => {
    if (req.method !== "POST") throw methodNotAllowed();
    if (!isJsonMediaType(fieldLines(req, "content-type"))) throw mediaTypeUnsupported();
  });
}

function methodNotAllowed(): GuardError {
  return new GuardError({
    status: 405,
    code: "method-not-allowed",
    message: "webhooks are sent with POST",
    // RFC 9110 section 15.5.6.
    headers: { Allow: "POST" },
  });
}

function mediaTypeUnsupported(): GuardError {
  return new GuardError({
    status: 415,
    code: "media-type-unsupported",
    message: "a webhook needs exactly one Content-Type, application/json, in UTF-8",
  });
}
