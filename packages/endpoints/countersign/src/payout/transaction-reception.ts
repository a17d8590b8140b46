import type { ReceivedRequest } from "@countersign/core";
import { holderOf, pageOf, Steps, type HeaderFields } from "@countersign/core/internal";
import { unclaimedVerifier } from "@countersign/http-signature-verify";
import type { TransactionMode } from "@countersign/idempotency";
import {
  transactionOwner,
  type KeptAnswer,
  type TransactionOwner,
  type WhileConnected,
} from "@countersign/idempotency-guard/internal";
import {
  factoryName,
  payoutForm,
  resolveTransactionOptions,
  unauthorizedHeaders,
  withFloor,
  type PayContext,
  type PayoutTransactionOptions,
} from "./options.ts";
import { payoutOf, verifiedBytesFingerprint, type Payout } from "./payout.ts";
import {
  instructionReader,
  keyOf,
  lookUpBusiness,
  payoutReception,
  type PayoutAdapter,
  type PayoutReception,
} from "./reception.ts";

/** What an adapter does about answers that the handler gives by the framework's response. */
interface Early {
  /** The handler looks at the request, which can lead to the response. */
  watch(): void;
  around(handle: () => unknown): unknown;
}

export interface PayoutPayment<Native> {
  /** Checks all and pays; resolves to the answer once the transaction has committed, rejects with the refusal or the handler's error. */
  receive(
    this: void,
    request: ReceivedRequest,
    native: Native,
    whileConnected: WhileConnected,
    early?: Early,
  ): Promise<KeptAnswer>;
  readonly unauthorizedHeaders: HeaderFields;
  readonly drain: TransactionOwner<unknown>["drain"];
}

/** The steps of a payout for an adapter, of either form. Throws an OptionError on a bad option. */
export function payoutSteps<Native extends object>(
  options: object,
  adapter: PayoutAdapter<Native>,
): { readonly payment: PayoutPayment<Native> } | { readonly reception: PayoutReception<Native> } {
  const form = payoutForm<Native>(options);
  return "paid" in form
    ? { payment: payoutPayment(form.paid, adapter) }
    : { reception: payoutReception(form.handled, adapter) };
}

/** The steps of a payout whose handler gets the transaction. Throws an OptionError on a bad option. */
function payoutPayment<Native extends object>(
  options: PayoutTransactionOptions<Native, never, TransactionMode>,
  adapter: PayoutAdapter<Native>,
): PayoutPayment<Native> {
  const { factory: owner = factoryName, show = () => {} } = adapter;
  const read = resolveTransactionOptions(options, owner);
  const { stores, findBusiness, lookupTimeoutMs, outcomes, mayWriteNothing } = read;
  const before = instructionReader(read, adapter);
  const { nonces } = stores;
  const signatureOwner = holderOf(owner, "signature");
  const policy = { ...withFloor(read.signature, signatureOwner), nonces };
  const verify = unclaimedVerifier(policy, signatureOwner);
  const { fingerprint: fingerprintOf = verifiedBytesFingerprint, ...guard } = read.idempotency;
  const owned = transactionOwner(stores, guard, holderOf(owner, "idempotency"));
  const { pay }: { pay: (payout: Payout, context: PayContext<Native, never>) => unknown } = options;

  /** Asked before BEGIN: a remote question must not hold a connection. Thrown in the transaction: a paid key stays 409. */
  const lookUp = async (native: Native): Promise<() => Payout> => {
    if (findBusiness === undefined) return () => payoutOf(native);
    try {
      const payout = await lookUpBusiness(findBusiness, lookupTimeoutMs, native);
      show(native, { payout });
      return () => payout;
    } catch (error) {
      return () => {
        throw error;
      };
    }
  };

  return {
    unauthorizedHeaders,
    async receive(request, native, whileConnected, early = unwatched) {
      const steps = new Steps(native);
      try {
        before.admit(request, native, steps);
        steps.begin("httpSignatureVerify");
        const { signature, nonce } = await verify(request);
        show(native, { signature });
        const payout = await readOrClaim(nonce, () => before.read(request, native, steps));
        steps.begin("findBusiness");
        const found = await lookUp(native);
        steps.begin("idempotencyGuard");
        let known: Payout | undefined;
        const attempt = {
          key: keyOf(payout, guard.scope),
          fingerprint: () => fingerprintOf(native),
          nonce,
          mustWrite: !mayWriteNothing,
          before: (): void => {
            known = found();
          },
          after: outcomes && ((tx: never): unknown => outcomes.expect(tx, known ?? payout)),
        };
        const answer = await owned.pay(native, attempt, whileConnected, (_tx, context) =>
          early.around(() => pay(known ?? payout, contextOf(context, native, early))),
        );
        steps.end();
        return answer;
      } catch (thrown) {
        throw steps.refused(thrown);
      }
    },
    drain: owned.drain,
  };
}

type UnclaimedNonce = Awaited<ReturnType<ReturnType<typeof unclaimedVerifier>>>["nonce"];

/** A verified request that is refused before its transaction claims its nonce alone: nobody can send it again. */
async function readOrClaim(nonce: UnclaimedNonce, read: () => Payout): Promise<Payout> {
  try {
    return read();
  } catch (error) {
    await nonce.claimAlone();
    throw error;
  }
}

const unwatched: Early = { watch() {}, around: (handle) => handle() };

function contextOf<Native>(
  context: { readonly tx: never },
  native: Native,
  early: Early,
): PayContext<Native, never> {
  return {
    get tx() {
      return context.tx;
    },
    get request() {
      early.watch();
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
