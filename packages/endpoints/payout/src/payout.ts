import { createRequestFact, GuardError, type ReceivedRequest, type RequestFact } from "@countersign/core";
import { inTime } from "@countersign/core/door";
import { textAt } from "@countersign/raw-body";
import type { PayoutCode } from "./codes.ts";
import { businessLookupUnavailable, businessUnknown, payoutInvalid } from "./faults.ts";
import { createPayoutParser, type PayoutBeneficiary, type PayoutSchemaOptions } from "./schema.ts";

declare global {
  namespace Express {
    /** What `findBusiness` returns for a known business. Declare its members in your app to have `req.payout.business` typed. */
    // oxlint-disable-next-line typescript/no-empty-object-type, typescript/no-empty-interface
    interface PayoutBusiness {}

    interface Request {
      /** The payout that this request instructs, once `payoutEndpoint` has let it pass. */
      payout?: Payout | undefined;
    }
  }
}

/** One payout instruction whose signature, digest and form were checked. Nothing in it was changed but what is said here. */
export interface Payout {
  readonly idempotencyKey: string;
  /** The key's dot-separated parts, at least three. Ids may hold dots, so which parts belong together is not known. */
  readonly idempotencyKeyParts: readonly string[];
  readonly businessId: string;
  readonly beneficiary: PayoutBeneficiary;
  /** As parsed: digits beyond a double are lost here, so take them by {@link Payout.amountText}. */
  readonly amount: Readonly<Record<string, unknown>>;
  /**
   * A number in `amount` exactly as signed, or the characters of a string there, by JSON pointer: `amountText("/value")` is `"10.10"`
   * for `{"value":10.10}`, of which `amount.value` is 10.1, and for `{"value":"10.10"}`. Undefined where neither is.
   */
  readonly amountText: (pointer: string) => string | undefined;
  /** The text under `referenceField`; undefined when that option is not set. */
  readonly reference: string | undefined;
  /** What `findBusiness` returned; undefined without `findBusiness`, and when it returned true. */
  readonly business: Express.PayoutBusiness | undefined;
  /** The whole body as received, further fields included. */
  readonly body: Readonly<Record<string, unknown>>;
}

// A trust decision: req.payout can be overwritten by any middleware, this cannot.
const payouts: RequestFact<Payout> = createRequestFact();

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

/** Makes `payout` the one of the request. */
function setPayout(subject: object, payout: Payout): Payout {
  payouts.set(subject, payout);
  return payout;
}

/**
 * Makes the check of a payout's body, as parsed from the verified bytes. It throws a GuardError 400 that lists every fault, and
 * remembers the payout for payoutOf().
 */
export function payoutReader(options: PayoutSchemaOptions): (subject: object, body: unknown) => Payout {
  const parse = createPayoutParser(options);
  return (subject, body) => {
    const { faults, payout } = parse(body);
    if (faults !== undefined) throw payoutInvalid(faults);
    // Member by member: V8 is slow at adding members to a copy.
    return setPayout(subject, {
      idempotencyKey: payout.idempotencyKey,
      idempotencyKeyParts: payout.idempotencyKeyParts,
      businessId: payout.businessId,
      beneficiary: payout.beneficiary,
      amount: payout.amount,
      amountText: (pointer) => amountText(subject, pointer),
      reference: payout.reference,
      business: undefined,
      body: payout.body,
    });
  };
}

function amountText(subject: object, pointer: string): string | undefined {
  // Without its slash it would name a sibling of the amount.
  if (typeof pointer !== "string" || !pointer.startsWith("/")) {
    throw new TypeError('amountText: pointer must be a JSON pointer inside amount, such as "/value"');
  }
  return textAt(subject, `/amount${pointer}`);
}

/** What `findBusiness` is asked: is this account the one of this business of yours? */
export interface BusinessQuery {
  /** In electronic format: without spaces. */
  readonly iban: string;
  readonly businessId: string;
}

/** A known business (or true), or false, undefined or null for an unknown one. */
type BusinessAnswer = Express.PayoutBusiness | boolean | null | undefined;

/**
 * The platform's own records. `Native` is the request of the framework. A throw or a rejection is answered with 503, so that the
 * service tries again.
 */
export type FindBusiness<Native> = (
  query: BusinessQuery,
  req: Native,
) => BusinessAnswer | Promise<BusinessAnswer>;

/** How a business is looked up. */
export interface BusinessLookup<Native> {
  readonly findBusiness: FindBusiness<Native>;
  readonly timeoutMs: number;
}

/**
 * Asks the platform whether it knows the beneficiary (spec rule 3), and returns the payout with the answer as its `business`. Runs
 * while the request owns the idempotency key: a key that was paid stays 409, and a refusal here releases the key.
 */
export async function lookUpBusiness<Native extends object>(
  { findBusiness, timeoutMs }: BusinessLookup<Native>,
  native: Native,
): Promise<Payout> {
  const payout = payoutOf(native);
  const query = { iban: payout.beneficiary.iban, businessId: payout.businessId };
  const late = (): Error => new Error(`findBusiness did not answer within ${timeoutMs} ms`);
  let answer: BusinessAnswer;
  try {
    answer = await inTime(findBusiness(query, native), timeoutMs, late);
  } catch (error) {
    throw businessLookupUnavailable(error);
  }
  return withBusiness(payout, answer, native);
}

function withBusiness(payout: Payout, answer: BusinessAnswer, native: object): Payout {
  // Anything falsy, whatever the types say: an empty string or 0 from a database is no business.
  if (!answer) throw businessUnknown();
  // The rows of a query, empty or not: taken for a business they would admit every IBAN.
  if (Array.isArray(answer)) {
    throw new TypeError(
      "payoutEndpoint: findBusiness returned an array; return one business, true, or undefined when there is none",
    );
  }
  return answer === true ? payout : setPayout(native, { ...payout, business: answer });
}

/** Admits POST. What the service signs for another method is no payout. */
export function assertPost({ method }: ReceivedRequest): void {
  if (method !== "POST") throw methodNotAllowed();
}

function methodNotAllowed(): GuardError<PayoutCode> {
  return new GuardError<PayoutCode>({
    status: 405,
    code: "method-not-allowed",
    message: "payouts are instructed with POST",
    // RFC 9110 section 15.5.6.
    headers: { Allow: "POST" },
  });
}
