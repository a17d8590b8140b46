import { hash } from "node:crypto";
import { verifiedDigest } from "@countersign/content-digest";
import { type ReceivedRequest } from "@countersign/core";
import {
  assertNoKeyClaimed,
  capturedRawBody,
  holderOf,
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
import { defaultMaxDepth, parseJsonBody } from "@countersign/raw-body";
import { factoryName, resolveOptions, unauthorizedHeaders, type PayoutOptions } from "./options.ts";
import { lookUpBusiness, payoutReader, type Payout } from "./payout.ts";
import { payoutStoreKey } from "./schema.ts";

/** What a door does in a way of its own. `Native` is the request of its framework. */
export interface PayoutDoor<Native> {
  /** The name in the TypeErrors of options: that of the door's own factory. Default `payoutEndpoint`. */
  readonly factory?: string | undefined;
  /** Makes the check of the client's address. Default: `request.clientAddress` has to be in the list. */
  readonly admission?:
    | ((
        addresses: IpAllowlistOptions,
        owner: OptionOwner,
      ) => (request: ReceivedRequest, native: Native) => void)
    | undefined;
  /** Throws the refusal of a method or path that is not the endpoint's. Behind the signature, which covers both. */
  readonly assertRoute: (request: ReceivedRequest, native: Native) => void;
  /** Shows the app what was found, as soon as it was. */
  readonly show?: ((native: Native, found: Readonly<FoundOfPayout>) => void) | undefined;
}

/** What is found of a payout, step by step. */
interface FoundOfPayout {
  readonly signature?: VerifiedSignature;
  readonly body?: unknown;
  readonly payout?: Payout;
}

/** Receives payouts, without a framework. Made by {@link payoutReception}. */
export interface PayoutReception<Native> {
  /**
   * Address, signature, route, JSON, schema, claim of the key: one after the other, each verdict on `countersign:guard`. Rejects with
   * the refusal. What it resolves to owns the key: its decide() takes the status of the answer, which has to wait for that.
   */
  receive(
    this: void,
    request: ReceivedRequest,
    native: Native,
    whileConnected: WhileConnected,
  ): Promise<OwnedRun>;
  /** Behind the claim: asks `findBusiness`; undefined without one. Its refusal is an answer like the handler's. */
  readonly lookUp: ((this: void, native: Native) => Promise<Payout>) | undefined;
  /** Header fields of every 401. */
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
    show = showNothing,
  }: PayoutDoor<Native>,
): PayoutReception<Native> {
  const read = resolveOptions(options, owner);
  const admitAddress = admission(read.addresses, holderOf(owner, "addresses"));
  const verify = httpSignatureVerifier(read.signature, holderOf(owner, "signature"));
  const { fingerprint: fingerprintOf = verifiedBytesFingerprint, ...idempotency } = read.idempotency;
  const { scope } = idempotency;
  const keys = keyOwner(idempotency, holderOf(owner, "idempotency"));
  const readPayout = payoutReader(read);
  const { findBusiness, lookupTimeoutMs: timeoutMs } = read;

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
        const { value: body } = parseJsonBody(request, defaultMaxDepth);
        show(native, { body });
        steps.begin("readPayout");
        const payout = readPayout(request, body);
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
          const payout = await lookUpBusiness({ findBusiness, timeoutMs }, native);
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

function usualAdmission(
  addresses: IpAllowlistOptions,
  owner: OptionOwner,
): (request: ReceivedRequest) => void {
  const admit = addressAdmission(addresses, owner);
  return ({ clientAddress }) => admit(clientAddress);
}

function showNothing(): void {}
