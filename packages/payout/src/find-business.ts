import { guard, isPromiseLike, withDeadline, type GuardRequest, type Middleware } from "@countersign/guard";
import { businessLookupUnavailable, businessUnknown } from "./faults.ts";
import { payoutOf, setPayout } from "./payout.ts";

/** What `findBusiness` is asked: is this account the one of this business of yours? */
export interface BusinessQuery {
  /** In electronic format: without spaces. */
  readonly iban: string;
  readonly businessId: string;
}

/** A known business (or true), or false, undefined or null for an unknown one. */
export type BusinessAnswer = Express.PayoutBusiness | boolean | null | undefined;

/** The platform's own records. A throw or a rejection is answered with 503, so that the service tries again. */
export type FindBusiness = (
  query: BusinessQuery,
  req: GuardRequest,
) => BusinessAnswer | Promise<BusinessAnswer>;

/**
 * Asks the platform whether it knows the beneficiary (spec rule 3) and puts the answer on `req.payout.business`. Runs while the
 * request owns the idempotency key: a key that was paid stays 409, and a refusal here releases the key.
 */
export function businessLookup(findBusiness: FindBusiness, timeoutMs: number): Middleware {
  return guard("findBusiness", (req) => {
    const { businessId, beneficiary } = payoutOf(req);
    let answer: BusinessAnswer | Promise<BusinessAnswer>;
    try {
      answer = findBusiness({ iban: beneficiary.iban, businessId }, req);
    } catch (error) {
      throw businessLookupUnavailable(error);
    }
    if (!isPromiseLike(answer)) {
      accept(req, answer);
      return undefined;
    }
    return acceptLater(req, answer, timeoutMs);
  });
}

async function acceptLater(
  req: GuardRequest,
  pending: PromiseLike<BusinessAnswer>,
  timeoutMs: number,
): Promise<void> {
  let answer: BusinessAnswer;
  try {
    const late = (): Error => new Error(`findBusiness did not answer within ${timeoutMs} ms`);
    answer = await withDeadline(Promise.resolve(pending), timeoutMs, late);
  } catch (error) {
    throw businessLookupUnavailable(error);
  }
  accept(req, answer);
}

function accept(req: GuardRequest, answer: BusinessAnswer): void {
  // Anything falsy, whatever the types say: an empty string or 0 from a database is no business.
  if (!answer) throw businessUnknown();
  // The rows of a query, empty or not: taken for a business they would admit every IBAN.
  if (Array.isArray(answer)) {
    throw new TypeError(
      "payoutEndpoint: findBusiness returned an array; return one business, true, or undefined when there is none",
    );
  }
  if (answer !== true) setPayout(req, { ...payoutOf(req), business: answer });
}
