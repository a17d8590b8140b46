import { GuardError, type ReceivedRequest } from "@countersign/core";
import {
  askApp,
  holderOf,
  keyClaims,
  Steps,
  type HeaderFields,
  type OptionOwner,
} from "@countersign/core/internal";
import { httpSignatureVerifier, type VerifiedSignature } from "@countersign/http-signature-verify";
import {
  keyOwner,
  type KeyOwner,
  type OwnedRun,
  type WhileConnected,
} from "@countersign/idempotency-guard/internal";
import { addressAdmission, type IpAllowlistOptions } from "@countersign/ip-allowlist";
import { parseJsonBody } from "@countersign/raw-body";
import { businessLookupUnavailable, businessUnknown, type PayoutCode } from "./faults.ts";
import {
  factoryName,
  resolveOptions,
  unauthorizedHeaders,
  withFloor,
  type FindBusiness,
  type PayoutOptions,
  type ReadPayoutOptions,
} from "./options.ts";
import { checkedPayout, payoutOf, payouts, verifiedBytesFingerprint, type Payout } from "./payout.ts";
import { createPayoutParser, payoutStoreKey } from "./schema.ts";

type AddressCheck<Native> = (native: Native, request: ReceivedRequest) => void;

/** The part of an endpoint that its framework decides. `Native` is the request of the framework. */
export interface PayoutAdapter<Native> {
  /** The factory that TypeErrors of options name. Default `payoutEndpoint`. */
  readonly factory?: string | undefined;
  /** Checks the client's address. Default: `request.clientAddress` has to be in the list. */
  readonly admission?:
    | ((addresses: IpAllowlistOptions, owner: OptionOwner) => AddressCheck<Native>)
    | undefined;
  /** Throws the refusal of a path that is not the endpoint's. Runs after the signature, which covers it. Default: its router chose. */
  readonly assertPath?: ((native: Native) => void) | undefined;
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
  /** Asks `findBusiness` after the claim; undefined without one. Begin the handler only by the run's mayBegin() then. */
  readonly lookUp: ((this: void, native: Native) => Promise<Payout>) | undefined;
  readonly unauthorizedHeaders: HeaderFields;
  readonly drain: KeyOwner["drain"];
}

/** The steps of a payout for an adapter. Throws an OptionError on a bad option. */
export function payoutReception<Native extends object>(
  options: PayoutOptions<Native>,
  adapter: PayoutAdapter<Native>,
): PayoutReception<Native> {
  const { factory: owner = factoryName, show = () => {} } = adapter;
  const read = resolveOptions(options, owner);
  const before = instructionReader(read, adapter);
  const signatureOwner = holderOf(owner, "signature");
  const verify = httpSignatureVerifier(withFloor(read.signature, signatureOwner), signatureOwner);
  const { fingerprint: fingerprintOf = verifiedBytesFingerprint, ...idempotency } = read.idempotency;
  const keys = keyOwner(idempotency, holderOf(owner, "idempotency"));
  const { findBusiness } = read;

  return {
    unauthorizedHeaders,
    async receive(request, native, whileConnected) {
      const steps = new Steps(native);
      try {
        before.admit(request, native, steps);
        steps.begin("httpSignatureVerify");
        show(native, { signature: await verify(request) });
        const payout = before.read(request, native, steps);
        steps.begin("idempotencyGuard");
        const key = keyOf(payout, idempotency.scope);
        const { idempotencyKey: sentKey } = payout;
        const attempt = { key, sentKey, fingerprint: () => fingerprintOf(native) };
        const run = await keys.claim(native, attempt, whileConnected);
        if (findBusiness !== undefined) run.beginsLater();
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

/** The key in the store. Without the keyid: what was paid under the old signing key must not be paid again under the new one. */
export function keyOf({ idempotencyKey }: Payout, scope: string | undefined): string {
  return scope === undefined ? payoutStoreKey(idempotencyKey) : idempotencyKey;
}

/** The steps before and after the signature that need no store, in either form. */
export interface InstructionReader<Native> {
  admit(this: void, request: ReceivedRequest, native: Native, steps: Steps): void;
  /** Reads the payout of a verified request. Throws its refusal. */
  read(this: void, request: ReceivedRequest, native: Native, steps: Steps): Payout;
}

export function instructionReader<Native extends object>(
  read: Pick<ReadPayoutOptions<Native>, "addresses" | "referenceField" | "maxLengths">,
  {
    factory: owner = factoryName,
    admission = usualAdmission,
    assertPath,
    show = () => {},
  }: PayoutAdapter<Native>,
): InstructionReader<Native> {
  const admitAddress = admission(read.addresses, holderOf(owner, "addresses"));
  const parse = createPayoutParser(read);
  return {
    admit(request, native, steps) {
      steps.begin("ipAllowlist");
      keyClaims.assertNone("ipAllowlist", native);
      admitAddress(native, request);
    },
    read(request, native, steps) {
      steps.begin("payoutRequest");
      assertPath?.(native);
      assertPost(request);
      steps.begin("jsonBody");
      const { value: body } = parseJsonBody(request);
      show(native, { body });
      steps.begin("readPayout");
      const payout = checkedPayout(request, parse(body));
      show(native, { payout });
      return payout;
    },
  };
}

/** Looks the beneficiary up (spec rule 3). Its refusal counts after the key alone: a paid key stays 409. */
export async function lookUpBusiness<Native extends object>(
  findBusiness: FindBusiness<Native>,
  timeoutMs: number,
  native: Native,
): Promise<Payout> {
  const payout = payoutOf(native);
  const query = { iban: payout.beneficiary.iban, businessId: payout.businessId };
  const asked = { name: "findBusiness", timeoutMs, failure: businessLookupUnavailable };
  const answer = await askApp(asked, () => findBusiness(query, native));
  // As if it were thrown: an object, it would admit every IBAN.
  if (answer instanceof Error) throw businessLookupUnavailable(answer);
  // Anything falsy, whatever the types say: an empty string or 0 from a database is no business.
  if (!answer) throw businessUnknown();
  const what = nameNoBusiness(answer);
  if (what !== undefined) {
    throw new TypeError(
      `payoutEndpoint: findBusiness returned ${what}; return one business, true, or undefined when there is none`,
    );
  }
  if (answer === true) return payout;
  const known = { ...payout, business: answer };
  payouts.set(native, known);
  return known;
}

/** Says what is returned whether or not there is a business: taken for one it would admit every IBAN. */
function nameNoBusiness(answer: unknown): string | undefined {
  if (Array.isArray(answer)) return "an array";
  if (answer instanceof Response) return "a Response";
  const { rows, execute }: { readonly rows?: unknown; readonly execute?: unknown } = Object(answer);
  if (Array.isArray(rows)) return "the result of a query, with its rows";
  return typeof execute === "function" ? "a query that nobody has executed" : undefined;
}

/** Admits POST alone: what the service signs for another method is no payout. */
function assertPost({ method }: ReceivedRequest): void {
  if (method === "POST") return;
  throw new GuardError<PayoutCode>({
    status: 405,
    code: "method-not-allowed",
    message: "payouts are instructed with POST",
    // RFC 9110 section 15.5.6.
    headers: { Allow: "POST" },
  });
}

function usualAdmission(addresses: IpAllowlistOptions, owner: OptionOwner): AddressCheck<object> {
  const admit = addressAdmission(addresses, owner);
  return (_native, { clientAddress }) => admit(clientAddress);
}
