import { hash } from "node:crypto";
import { verifiedDigest } from "@countersign/content-digest";
import { createRequestFact, type ReceivedRequest, type RequestFact } from "@countersign/core";
import { capturedRawBody } from "@countersign/core/internal";
import { textAt } from "@countersign/raw-body";
import { payoutInvalid } from "./faults.ts";
import type { createPayoutParser, ParsedPayout } from "./schema.ts";

declare global {
  namespace Express {
    /** What `findBusiness` returns for a known business. Declare its members in your app to have `req.payout.business` typed. */
    // oxlint-disable-next-line typescript/no-empty-object-type, typescript/no-empty-interface
    interface PayoutBusiness {}

    interface Request {
      /** Set once `payoutEndpoint` has let the request pass. */
      payout?: Payout | undefined;
    }
  }
}

/** One payout instruction whose signature, digest and form were checked. */
export interface Payout extends ParsedPayout {
  /** A number in `amount` exactly as signed, or a string, by JSON pointer: `"/value"` gives `"10.10"` where parsing gives 10.1. */
  readonly amountText: (pointer: string) => string | undefined;
  /** The signed body, as it was verified: for the platform's records. */
  readonly bodyText: () => string;
  /** Undefined without `findBusiness`, and when it returned true. */
  readonly business: Express.PayoutBusiness | undefined;
}

// A trust decision: req.payout can be overwritten by any middleware, this cannot.
export const payouts: RequestFact<Payout> = createRequestFact();

/** The payout of a request that passed `payoutEndpoint`. Throws an Error when it did not: a handler on an unguarded route. */
export function payoutOf(subject: object): Payout {
  const payout = payouts.get(subject);
  if (payout === undefined) {
    throw new Error(
      "payoutOf: no payout was checked for this request; mount payoutEndpoint(options) before the handler",
    );
  }
  return payout;
}

/** Remembers the payout for payoutOf(). Throws a GuardError 400 that lists every fault. */
export function checkedPayout(
  request: ReceivedRequest,
  { faults, payout }: ReturnType<ReturnType<typeof createPayoutParser>>,
): Payout {
  if (faults !== undefined) throw payoutInvalid(faults);
  // Member by member: V8 is slow at adding members to a copy.
  const checked: Payout = {
    idempotencyKey: payout.idempotencyKey,
    idempotencyKeyParts: payout.idempotencyKeyParts,
    businessId: payout.businessId,
    beneficiary: payout.beneficiary,
    amount: payout.amount,
    amountText: (pointer) => amountText(request, pointer),
    bodyText: () => bodyText(request),
    reference: payout.reference,
    business: undefined,
    body: payout.body,
  };
  payouts.set(request, checked);
  return checked;
}

function bodyText(subject: object): string {
  const bytes = capturedRawBody(subject);
  if (bytes === undefined) throw new Error("bodyText: the body's bytes are no longer held for this request");
  return bytes.toString("utf8");
}

function amountText(subject: object, pointer: string): string | undefined {
  // Without its slash it would name a sibling of the amount.
  if (typeof pointer !== "string" || !pointer.startsWith("/")) {
    throw new TypeError('amountText: pointer must be a JSON pointer inside amount, such as "/value"');
  }
  return textAt(subject, `/amount${pointer}`);
}

/** The digest of the signed bytes. */
// Not of req.rawBody: another middleware may have written to it since.
export function verifiedBytesFingerprint(subject: object): string {
  const digest = verifiedDigest(subject, "sha-256");
  if (digest !== undefined) return digest.toString("base64url");
  const bytes = capturedRawBody(subject);
  if (bytes === undefined) {
    throw new Error("payoutEndpoint: the body was not captured by the signature guard");
  }
  return hash("sha256", bytes, "base64url");
}
