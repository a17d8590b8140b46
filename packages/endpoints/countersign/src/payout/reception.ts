import { GuardError, type ReceivedRequest } from "@countersign/core";
import {
  askApp,
  holderOf,
  keyClaims,
  pageOf,
  Steps,
  type HeaderFields,
  type OptionOwner,
} from "@countersign/core/internal";
import {
  httpSignatureVerifier,
  unclaimedVerifier,
  type VerifiedSignature,
} from "@countersign/http-signature-verify";
import type { TransactionMode } from "@countersign/idempotency";
import {
  leaseRequests,
  resolveOwnerOptions,
  transactionRequests,
  type Handling,
  type Performance,
  type Drainable,
} from "@countersign/idempotency-guard/internal";
import { addressAdmission, type IpAllowlistOptions } from "@countersign/ip-allowlist";
import { parseJsonBody } from "@countersign/raw-body";
import { businessLookupUnavailable, businessUnknown, type PayoutCode } from "./faults.ts";
import {
  factoryName,
  payoutForm,
  resolveOptions,
  resolveTransactionOptions,
  unauthorizedHeaders,
  withFloor,
  type FindBusiness,
  type PayContext,
  type PayoutOptions,
  type PayoutTransactionOptions,
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

/** What an adapter does around the handler of a payout. */
interface PayoutHandling extends Handling {
  /** Called when the handler of transaction mode looks at the request, which can lead to the response. */
  readonly onRequestSeen?: (() => void) | undefined;
}

export interface PayoutReception<Native> extends Drainable {
  /** Whether the handler of the options, `pay`, gets the transaction of its key. Otherwise the handler follows. */
  readonly givesTransaction: boolean;
  /**
   * Checks all, owns the key of the payout while its handler runs, and resolves to the response to send. Rejects with the refusal, and in
   * transaction mode with the handler's error.
   */
  receive(
    this: void,
    request: ReceivedRequest,
    native: Native,
    handling: PayoutHandling,
  ): Promise<Performance>;
  readonly unauthorizedHeaders: HeaderFields;
}

/** The steps of a payout for an adapter, of either form. Throws an OptionError on a bad option. */
export function payoutReception<Native extends object>(
  options: object,
  adapter: PayoutAdapter<Native>,
): PayoutReception<Native> {
  const form = payoutForm<Native>(options);
  const payer = "paid" in form ? transactionPayer(form.paid, adapter) : leasePayer(form.handled, adapter);
  const { show = () => {} } = adapter;
  const { givesTransaction, drain, read, instruction, verify, perform } = payer;
  return {
    givesTransaction,
    drain,
    unauthorizedHeaders,
    async receive(request, native, handling) {
      const steps = new Steps(native);
      try {
        instruction.admit(request, native, steps);
        steps.begin("httpSignatureVerify");
        const { signature, nonce } = await verify(request);
        show(native, { signature });
        const payout = await readOrClaim(nonce, () => instruction.read(request, native, steps));
        if (read.findBusiness !== undefined) steps.begin("findBusiness");
        const found = await lookUp(read, native);
        if ("payout" in found) {
          show(native, found);
          steps.begin("idempotencyGuard");
        } else steps.instead("idempotencyGuard");
        const checked = { payout, native, nonce, assertBusiness: () => payoutIn(found, steps) };
        const performance = await perform(checked, {
          ...handling,
          begin(owned) {
            // What follows is the app's own.
            steps.end();
            return handling.begin(owned);
          },
        });
        if (givesTransaction) steps.end();
        return performance;
      } catch (thrown) {
        throw steps.refused(thrown);
      }
    },
  };
}

/** A payout whose instruction was checked. */
interface CheckedPayout<Native> {
  readonly payout: Payout;
  readonly native: Native;
  readonly nonce: UnclaimedNonce | undefined;
  /** What the lookup of its business has found; throws the refusal. */
  readonly assertBusiness: () => Payout;
}

/** The steps of a payout that differ by its form. */
interface Payer<Native> extends Pick<PayoutReception<Native>, "givesTransaction" | "drain"> {
  readonly read: Pick<
    ReadPayoutOptions<Native>,
    "addresses" | "referenceField" | "maxLengths" | "findBusiness" | "lookupTimeoutMs"
  >;
  readonly instruction: InstructionReader<Native>;
  readonly verify: (
    request: ReceivedRequest,
  ) => Promise<{ readonly signature: VerifiedSignature; readonly nonce: UnclaimedNonce | undefined }>;
  readonly perform: (checked: CheckedPayout<Native>, handling: PayoutHandling) => Promise<Performance>;
}

/** Lease mode: the nonce is claimed with the signature, and the handler that follows pays elsewhere. */
function leasePayer<Native extends object>(
  options: PayoutOptions<Native>,
  adapter: PayoutAdapter<Native>,
): Payer<Native> {
  const { factory: owner = factoryName } = adapter;
  const read = resolveOptions(options, owner);
  const instruction = instructionReader(read, adapter);
  const signatureOwner = holderOf(owner, "signature");
  const verify = httpSignatureVerifier(withFloor(read.signature, signatureOwner), signatureOwner);
  const { fingerprint: fingerprintOf = verifiedBytesFingerprint, ...guard } = read.idempotency;
  const { perform, drain } = leaseRequests(resolveOwnerOptions(guard, holderOf(owner, "idempotency")));
  return {
    givesTransaction: false,
    drain,
    read,
    instruction,
    verify: async (request) => ({ signature: await verify(request), nonce: undefined }),
    perform: ({ payout, native, assertBusiness }, handling) =>
      perform(
        native,
        {
          key: keyOf(payout, guard.scope),
          sentKey: payout.idempotencyKey,
          fingerprint: () => fingerprintOf(native),
          before: () => void assertBusiness(),
        },
        handling,
      ),
  };
}

/** Transaction mode: payout, key and nonce commit in one transaction, which `pay` gets. */
function transactionPayer<Native extends object>(
  options: PayoutTransactionOptions<Native, never, TransactionMode>,
  adapter: PayoutAdapter<Native>,
): Payer<Native> {
  const { factory: owner = factoryName } = adapter;
  const read = resolveTransactionOptions(options, owner);
  const instruction = instructionReader(read, adapter);
  const { stores, outcomes, mayWriteNothing } = read;
  const signatureOwner = holderOf(owner, "signature");
  const policy = { ...withFloor(read.signature, signatureOwner), nonces: stores.nonces };
  const { fingerprint: fingerprintOf = verifiedBytesFingerprint, ...guard } = read.idempotency;
  const verify = unclaimedVerifier(policy, signatureOwner);
  const { perform, drain } = transactionRequests(stores, guard, holderOf(owner, "idempotency"));
  const { pay }: { pay: (payout: Payout, context: PayContext<Native, never>) => unknown } = options;
  return {
    givesTransaction: true,
    drain,
    read,
    instruction,
    verify,
    perform: ({ payout, native, nonce, assertBusiness }, handling) => {
      let known = payout;
      const work = {
        key: keyOf(payout, guard.scope),
        fingerprint: () => fingerprintOf(native),
        nonce,
        mustWrite: !mayWriteNothing,
        before: () => void (known = assertBusiness()),
        handle: (context: { readonly tx: never }) => pay(known, contextOf(context, native, handling)),
        after: outcomes && ((tx: never): unknown => outcomes.expect(tx, known)),
      };
      return perform(native, work, handling);
    },
  };
}

type UnclaimedNonce = Awaited<ReturnType<ReturnType<typeof unclaimedVerifier>>>["nonce"];

/** A verified request that is refused before a transaction claims its nonce claims that alone: nobody can send it again. */
async function readOrClaim(nonce: UnclaimedNonce | undefined, read: () => Payout): Promise<Payout> {
  try {
    return read();
  } catch (error) {
    await nonce?.claimAlone();
    throw error;
  }
}

/** What the lookup of the business has found, or why the payout is refused. */
type Found = { readonly payout: Payout } | { readonly refusal: unknown };

/**
 * Asks the app for the beneficiary's business before the key is claimed: a remote question must hold neither a connection nor a key. What it
 * found counts after the claim: a paid key stays 409.
 */
async function lookUp<Native extends object>(
  { findBusiness, lookupTimeoutMs }: Payer<Native>["read"],
  native: Native,
): Promise<Found> {
  if (findBusiness === undefined) return { payout: payoutOf(native) };
  try {
    return { payout: await lookUpBusiness(findBusiness, lookupTimeoutMs, native) };
  } catch (refusal) {
    return { refusal };
  }
}

/** Throws the refusal, as that of the step which has asked. */
function payoutIn(found: Found, steps: Steps): Payout {
  if ("payout" in found) return found.payout;
  steps.begin("findBusiness");
  throw found.refusal;
}

function contextOf<Native>(
  context: { readonly tx: never },
  native: Native,
  { onRequestSeen }: Pick<PayoutHandling, "onRequestSeen">,
): PayContext<Native, never> {
  return {
    get tx() {
      return context.tx;
    },
    get request() {
      onRequestSeen?.();
      return native;
    },
    hold,
  };
}

function hold(): never {
  const page = pageOf("concepts/transactions#lease-mode");
  throw new TypeError(
    `pay: hold() has no meaning in a transaction, which is rolled back when pay throws. See ${page}`,
  );
}

/** The key in the store. Without the keyid: what was paid under the old signing key must not be paid again under the new one. */
function keyOf({ idempotencyKey }: Payout, scope: string | undefined): string {
  return scope === undefined ? payoutStoreKey(idempotencyKey) : idempotencyKey;
}

/** The steps before and after the signature that need no store, in either form. */
interface InstructionReader<Native> {
  admit(this: void, request: ReceivedRequest, native: Native, steps: Steps): void;
  /** Reads the payout of a verified request. Throws its refusal. */
  read(this: void, request: ReceivedRequest, native: Native, steps: Steps): Payout;
}

function instructionReader<Native extends object>(
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
async function lookUpBusiness<Native extends object>(
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
