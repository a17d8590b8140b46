import { hash } from "node:crypto";
import { verifiedDigest } from "@countersign/content-digest";
import { createRequestFact, GuardError, type ReceivedRequest, type RequestFact } from "@countersign/core";
import {
  assertNoKeyClaimed,
  capturedRawBody,
  holderOf,
  inTime,
  type OptionOwner,
  type HeaderFields,
  Steps,
} from "@countersign/core/door";
import { httpSignatureVerifier, type VerifiedSignature } from "@countersign/http-signature-verify";
import {
  keyOwner,
  type KeyOwner,
  type OwnedRun,
  type WhileConnected,
} from "@countersign/idempotency-guard/door";
import { addressAdmission, type IpAllowlistOptions } from "@countersign/ip-allowlist";
import { parseJsonBody, textAt } from "@countersign/raw-body";
import { businessLookupUnavailable, businessUnknown, payoutInvalid, type PayoutCode } from "./faults.ts";
import {
  factoryName,
  resolveOptions,
  unauthorizedHeaders,
  type BusinessAnswer,
  type PayoutOptions,
  type ReadPayoutOptions,
} from "./options.ts";
import { createPayoutParser, payoutStoreKey, type ParsedPayout } from "./schema.ts";

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
  /** Undefined without `findBusiness`, and when it returned true. */
  readonly business: Express.PayoutBusiness | undefined;
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

/** The part of an endpoint that its framework decides. `Native` is the request of the framework. */
export interface PayoutDoor<Native> {
  /** The factory that TypeErrors of options name. Default `payoutEndpoint`. */
  readonly factory?: string | undefined;
  /** Checks the client's address. Default: `request.clientAddress` has to be in the list. */
  readonly admission?:
    | ((
        addresses: IpAllowlistOptions,
        owner: OptionOwner,
      ) => (request: ReceivedRequest, native: Native) => void)
    | undefined;
  /** Throws the refusal of a method or path that is not the endpoint's. Runs after the signature, which covers both. */
  readonly assertRoute: (request: ReceivedRequest, native: Native) => void;
  /** Shows each result to the app as soon as it is known. */
  readonly show?: ((native: Native, found: Readonly<FoundOfPayout>) => void) | undefined;
}

interface FoundOfPayout {
  readonly signature?: VerifiedSignature;
  readonly body?: unknown;
  readonly payout?: Payout;
}

export interface PayoutReception<Native> {
  /** Checks all, then claims the key; rejects with the refusal. The result owns the key: answer after its decide(status). */
  receive(
    this: void,
    request: ReceivedRequest,
    native: Native,
    whileConnected: WhileConnected,
  ): Promise<OwnedRun>;
  /** Asks `findBusiness` after the claim; undefined without one. Its refusal is an answer like the handler's. */
  readonly lookUp: ((this: void, native: Native) => Promise<Payout>) | undefined;
  readonly unauthorizedHeaders: HeaderFields;
  readonly drain: KeyOwner["drain"];
}

/** The steps of a payout for a door. Throws an OptionError on a bad option. */
export function payoutReception<Native extends object>(
  options: PayoutOptions<Native>,
  {
    factory: owner = factoryName,
    admission = usualAdmission,
    assertRoute,
    show = () => {},
  }: PayoutDoor<Native>,
): PayoutReception<Native> {
  const read = resolveOptions(options, owner);
  const admitAddress = admission(read.addresses, holderOf(owner, "addresses"));
  const verify = httpSignatureVerifier(read.signature, holderOf(owner, "signature"));
  const { fingerprint: fingerprintOf = verifiedBytesFingerprint, ...idempotency } = read.idempotency;
  const { scope } = idempotency;
  const keys = keyOwner(idempotency, holderOf(owner, "idempotency"));
  const parse = createPayoutParser(read);
  const { findBusiness } = read;

  return {
    unauthorizedHeaders,
    async receive(request, native, whileConnected) {
      const steps = new Steps(native);
      try {
        steps.begin("ipAllowlist");
        assertNoKeyClaimed("ipAllowlist", native);
        admitAddress(request, native);
        steps.begin("httpSignatureVerify");
        show(native, { signature: await verify(request) });
        steps.begin("payoutRequest");
        assertRoute(request, native);
        steps.begin("jsonBody");
        const { value: body } = parseJsonBody(request);
        show(native, { body });
        steps.begin("readPayout");
        const payout = checkedPayout(request, parse(body));
        show(native, { payout });
        steps.begin("idempotencyGuard");
        // Without the keyid: a payout key that was paid under the old signing key must not be paid again under the new one.
        const key = scope === undefined ? payoutStoreKey(payout.idempotencyKey) : payout.idempotencyKey;
        const fingerprint = fingerprintOf(native);
        const run = await keys.claim(native, { key, fingerprint }, whileConnected);
        steps.end();
        return run;
      } catch (thrown) {
        throw steps.refused(thrown);
      }
    },
    lookUp:
      findBusiness &&
      (async (native) => {
        const steps = new Steps(native);
        try {
          steps.begin("findBusiness");
          const payout = await lookUpBusiness(findBusiness, read.lookupTimeoutMs, native);
          show(native, { payout });
          steps.end();
          return payout;
        } catch (thrown) {
          throw steps.refused(thrown);
        }
      }),
    drain: keys.drain,
  };
}

/** Remembers the payout for payoutOf(). Throws a GuardError 400 that lists every fault. */
function checkedPayout(
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
    reference: payout.reference,
    business: undefined,
    body: payout.body,
  };
  payouts.set(request, checked);
  return checked;
}

function amountText(subject: object, pointer: string): string | undefined {
  // Without its slash it would name a sibling of the amount.
  if (typeof pointer !== "string" || !pointer.startsWith("/")) {
    throw new TypeError('amountText: pointer must be a JSON pointer inside amount, such as "/value"');
  }
  return textAt(subject, `/amount${pointer}`);
}

// Not of req.rawBody: another middleware may have written to it since.
function verifiedBytesFingerprint(subject: object): string {
  const digest = verifiedDigest(subject, "sha-256");
  if (digest !== undefined) return digest.toString("base64url");
  const bytes = capturedRawBody(subject);
  if (bytes === undefined) {
    throw new Error("payoutEndpoint: the body was not captured by the signature guard");
  }
  return hash("sha256", bytes, "base64url");
}

/** Looks the beneficiary up (spec rule 3) while the request owns the key: a paid key stays 409, and a refusal here releases the key. */
async function lookUpBusiness<Native extends object>(
  findBusiness: NonNullable<ReadPayoutOptions<Native>["findBusiness"]>,
  timeoutMs: number,
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
  // Anything falsy, whatever the types say: an empty string or 0 from a database is no business.
  if (!answer) throw businessUnknown();
  // The rows of a query, empty or not: taken for a business they would admit every IBAN.
  if (Array.isArray(answer)) {
    throw new TypeError(
      "payoutEndpoint: findBusiness returned an array; return one business, true, or undefined when there is none",
    );
  }
  if (answer === true) return payout;
  const known = { ...payout, business: answer };
  payouts.set(native, known);
  return known;
}

/** Admits POST alone: what the service signs for another method is no payout. */
export function assertPost({ method }: ReceivedRequest): void {
  if (method === "POST") return;
  throw new GuardError<PayoutCode>({
    status: 405,
    code: "method-not-allowed",
    message: "payouts are instructed with POST",
    // RFC 9110 section 15.5.6.
    headers: { Allow: "POST" },
  });
}

function usualAdmission(
  addresses: IpAllowlistOptions,
  owner: OptionOwner,
): (request: ReceivedRequest) => void {
  const admit = addressAdmission(addresses, owner);
  return ({ clientAddress }) => admit(clientAddress);
}
