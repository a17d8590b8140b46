import { guardErrors, type ErrorMiddleware, type Middleware } from "@countersign/guard";
import { httpSignatureVerify } from "@countersign/http-signature-verify";
import { idempotencyGuard } from "@countersign/idempotency-guard";
import { ipAllowlist } from "@countersign/ip-allowlist";
import { jsonBody } from "@countersign/raw-body";
import { businessLookup } from "./find-business.ts";
import { resolveOptions, type PayoutEndpointOptions } from "./options.ts";
import { withOwnOptionNames } from "./own-option-names.ts";
import { readPayout } from "./read-payout.ts";

/** What `payoutEndpoint` returns: handlers for `app.post`, `router.post` or `app.use`, in this order. */
export type PayoutChain = (Middleware | ErrorMiddleware)[];

/**
 * Everything between the wire and the handler that pays: `app.post(path, payoutEndpoint(options), handler)`. The handler runs
 * at most once for each idempotency_key, with `req.payout` checked. Throws a TypeError on a bad option.
 */
export function payoutEndpoint(options: PayoutEndpointOptions): PayoutChain {
  const { addresses, signature, schema, lookup, idempotency, answers } = resolveOptions(options);
  const chain: PayoutChain = [
    part("ipAllowlist", () => ipAllowlist(addresses)),
    part("httpSignatureVerify", () => httpSignatureVerify(signature)),
    jsonBody(),
    readPayout(schema),
    part("idempotencyGuard", () => idempotencyGuard(idempotency)),
  ];
  // Behind the claim: a paid key is 409 even when its business has gone since.
  if (lookup !== undefined) chain.push(businessLookup(lookup.findBusiness, lookup.timeoutMs));
  // Before the handler: Express hands an error only to what stands behind it, so the handler's own errors are the app's.
  if (answers !== undefined) chain.push(part("guardErrors", () => guardErrors(answers)));
  return chain;
}

function part<T>(factory: string, build: () => T): T {
  return withOwnOptionNames("payoutEndpoint", { factory, ownNames: { allow: "allowIps" } }, build);
}
