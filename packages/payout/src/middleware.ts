import { chain, guardErrors, withOwnOptionNames, type Middleware } from "@countersign/guard";
import { httpSignatureVerify } from "@countersign/http-signature-verify";
import { idempotencyGuard, type DrainableMiddleware } from "@countersign/idempotency-guard";
import { ipAllowlist } from "@countersign/ip-allowlist";
import { jsonBody } from "@countersign/raw-body";
import { businessLookup } from "./find-business.ts";
import { resolveOptions, type PayoutEndpointOptions } from "./options.ts";
import { payoutRequest } from "./payout-request.ts";
import { readPayout } from "./read-payout.ts";

/**
 * Everything between the wire and the handler that pays: `app.post(path, payoutEndpoint(options), handler)`. The handler runs
 * at most once for each idempotency_key, with `req.payout` checked, for POST to that very path alone. Throws a TypeError on a bad
 * option.
 */
export function payoutEndpoint(options: PayoutEndpointOptions): DrainableMiddleware {
  const { addresses, signature, schema, lookup, idempotency, answers } = resolveOptions(options);
  const checks: Middleware[] = [
    part("ipAllowlist", () => ipAllowlist(addresses)),
    part("httpSignatureVerify", () => httpSignatureVerify(signature)),
    payoutRequest(() => endpoint),
    jsonBody(),
    readPayout(schema),
  ];
  // The handler's own errors are the app's: only those of the chain come here.
  const respond = answers === undefined ? undefined : part("guardErrors", () => guardErrors(answers));
  const idempotent = part("idempotencyGuard", () => idempotencyGuard(idempotency));
  const parts: Middleware[] = [...checks, idempotent];
  // Behind the claim: a paid key is 409 even when its business has gone since.
  if (lookup !== undefined) parts.push(businessLookup(lookup.findBusiness, lookup.timeoutMs));
  const endpoint = Object.assign(chain("payoutEndpoint", parts, respond), { drain: idempotent.drain });
  return endpoint;
}

function part<T>(factory: string, build: () => T): T {
  return withOwnOptionNames("payoutEndpoint", { factory, ownNames: { allow: "allowIps" } }, build);
}
