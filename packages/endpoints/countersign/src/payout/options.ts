import { OptionError, type NonceStore } from "@countersign/core";
import {
  hasMethods,
  holderOf,
  option,
  optionError,
  readOptions,
  type HeaderFields,
  type OptionOwner,
  type OptionTable,
  type ReadOptions,
} from "@countersign/core/internal";
import { wantContentDigest } from "@countersign/content-digest";
import { defaultComponents } from "@countersign/http-message-signatures";
import type {
  HttpSignatureVerifyOptions,
  PolicyLookup,
  SignaturePolicy,
} from "@countersign/http-signature-verify";
import type { IdempotencyGuardOptions } from "@countersign/idempotency-guard";
import { transactionOptions } from "@countersign/idempotency/internal";
import type { NoPromise, TransactionMode, TransactionStores } from "@countersign/idempotency";
import {
  leaseOptions,
  type KeyOwnerOptions,
  type TransactionGuardOptions,
} from "@countersign/idempotency-guard/internal";
import type { IpAllowlistOptions } from "@countersign/ip-allowlist";
import type { Payout } from "./payout.ts";
import { namedFields, payoutStoreKey } from "./schema.ts";

type PayoutAddresses = Omit<IpAllowlistOptions, "status">;

/** `requiredComponents` must include the interface's four, the default. Options that would accept less cannot be set. */
type PayoutSignature = Omit<HttpSignatureVerifyOptions, FixedBySpec | "nonces" | "policy"> & {
  readonly nonces: NonceStore;
  /** As of `httpSignatureVerify`; what it returns cannot accept less than the interface does. */
  readonly policy?: PayoutPolicyLookup | undefined;
};

type PayoutPolicy = Omit<SignaturePolicy, FixedBySpec>;

type PayoutPolicyLookup = (
  ...asked: Parameters<PolicyLookup>
) => PayoutPolicy | null | undefined | Promise<PayoutPolicy | null | undefined>;

type FixedBySpec = "algorithms" | "allowUnsignedBody" | "requiredParameters";

const fixedBySpec: readonly FixedBySpec[] = ["algorithms", "allowUnsignedBody", "requiredParameters"];

/** `scope` is `payout` by default; required where the store serves a second endpoint or guard. */
type PayoutIdempotency<Native> = Omit<IdempotencyGuardOptions<Native>, FixedByWire>;

// On this wire 409 is final, and 503 whatever is not.
type FixedByWire = "key" | "methods" | "required" | "doneStatus" | "inFlightStatus" | "replay";

const fixedByWire: readonly FixedByWire[] = [
  "key",
  "methods",
  "required",
  "doneStatus",
  "inFlightStatus",
  "replay",
];

/** Longest accepted texts, in UTF-16 units. The interface shows no lengths; these keep a caller from filling a database. */
interface PayoutMaxLengths {
  /** Default 256, at most 505, less with a longer `scope`: a store takes keys of 512 characters, and `payout:` is put before it. */
  readonly idempotencyKey?: number | undefined;
  /** Default 256. */
  readonly businessId?: number | undefined;
  /** Default 256. */
  readonly beneficiaryName?: number | undefined;
  /** Default 1024. */
  readonly reference?: number | undefined;
}

/** The question to `findBusiness`: does this account belong to this business of yours? */
export interface BusinessQuery {
  /** In electronic format: without spaces. */
  readonly iban: string;
  readonly businessId: string;
}

/** A known business, or whether it is one. */
type BusinessAnswer = Express.PayoutBusiness | boolean | null | undefined;

/** A throw or a rejection is answered with 503, so that the service tries again. */
export type FindBusiness<Native> = (
  query: BusinessQuery,
  req: Native,
) => BusinessAnswer | Promise<BusinessAnswer>;

interface CheckedPayoutOptions<Native> {
  readonly addresses: PayoutAddresses;
  /** Looks the beneficiary up in the platform's own records. Recommended: without it the money goes to any valid IBAN. */
  readonly findBusiness?: FindBusiness<Native> | undefined;
  /** How long `findBusiness` may take, in milliseconds, before the answer is 503. Default 5,000. */
  readonly lookupTimeoutMs?: number | undefined;
  /** The body's field with the reference text, which the interface does not show. Default none: nothing is checked. */
  readonly referenceField?: string | undefined;
  readonly maxLengths?: PayoutMaxLengths | undefined;
}

/** A payout whose handler comes after the endpoint, and ends its key itself or by its answer. */
export interface PayoutOptions<Native> extends CheckedPayoutOptions<Native> {
  readonly signature: PayoutSignature;
  /** How a payout is done once: options of idempotencyGuard. */
  readonly idempotency: PayoutIdempotency<Native>;
  readonly stores?: undefined;
  readonly pay?: undefined;
}

/** A payout that is paid in one transaction with its key and its nonce. */
export interface PayoutTransactionOptions<
  Native,
  Tx,
  Mode extends TransactionMode,
> extends CheckedPayoutOptions<Native> {
  readonly signature: Omit<PayoutSignature, "nonces">;
  /** The app's own database, such as `createStores({ database: fromPrisma(prisma) })` makes it. */
  readonly stores: TransactionStores<Tx, Mode>;
  /** Writes the payout with `tx`. It commits when this returns, and may run again: do nothing outside of the database. */
  readonly pay: Pay<Native, Tx, Mode>;
  /**
   * Whether `pay` may return without changing a row by its `tx`. Default false: such a payout is not confirmed (503 `nothing-written`) and its
   * key is held, because a statement without `await`, or one by another connection, looks the same.
   */
  readonly mayWriteNothing?: boolean | undefined;
  /** Notes in the same transaction that the payout's outcome is due: `createOutcomes({ expectWithinMs, … })`. Default none. */
  readonly outcomes?: ExpectedOutcomes<Tx> | undefined;
  /** How keys are named and waited for. */
  readonly idempotency?: PayoutTransactionGuard<Native> | undefined;
}

/** What of `countersign/outcomes` is used. */
export interface ExpectedOutcomes<Tx> {
  readonly expectWithinMs: number | undefined;
  expect(this: void, tx: Tx, payout: Pick<Payout, "idempotencyKey">): unknown;
}

interface PayoutTransactionGuard<Native>
  extends TransactionGuardOptions, Pick<PayoutIdempotency<Native>, "fingerprint"> {}

export interface PayContext<Native, Tx> {
  /** The open transaction, as the app's own library knows it. Good until `pay` returns. */
  readonly tx: Tx;
  readonly request: Native;
  /** Throws: a key can be held in lease mode alone, for handlers that act outside of the database. */
  hold(this: void, reason: string): never;
}

/** Returns `answer(status, body)` to answer otherwise than by an empty 200, and throws `refuse(code)` to refuse; else the result is ignored. */
type Pay<Native, Tx, Mode extends TransactionMode> = Mode extends "sync"
  ? (payout: Payout, context: PayContext<Native, Tx>) => NoPromise
  : (payout: Payout, context: PayContext<Native, Tx>) => unknown;

export const factoryName = "payoutEndpoint";

/** Header fields of every 401: which digests the signature may cover (RFC 9530 section 4). */
export const unauthorizedHeaders: HeaderFields = { "Want-Content-Digest": wantContentDigest(["sha-256"]) };

const keyLength = (max: number): OptionTable<PayoutMaxLengths>["idempotencyKey"] =>
  option.integer({ min: 1, max, fallback: 256 });

const lengthsTable: OptionTable<PayoutMaxLengths> = {
  idempotencyKey: keyLength(longestKey()),
  businessId: option.integer({ min: 1, max: 100_000, fallback: 256 }),
  beneficiaryName: option.integer({ min: 1, max: 100_000, fallback: 256 }),
  reference: option.integer({ min: 1, max: 100_000, fallback: 1024 }),
};

const checksTable = {
  addresses: option.section<PayoutAddresses>('{ allow: ["192.0.2.10"] }', ["status"]),
  findBusiness: option.shown(option.optional(option.call()), (call) => call !== undefined),
  lookupTimeoutMs: option.integer({ min: 1, max: 60_000, fallback: 5_000 }),
  referenceField: option.optional(option.own(readFieldName)),
  maxLengths: option.group(lengthsTable, "256, 256, 256, 1024"),
};

export const table = {
  ...checksTable,
  signature: option.section<PayoutSignature>("{ keys, nonces }", fixedBySpec),
  idempotency: option.section("{ store }", fixedByWire),
  stores: option.own(readNothing, "none"),
  pay: option.own(readNothing, "none"),
} satisfies OptionTable<PayoutOptions<never>, unknown>;

/** Of the form with a transaction. */
export const transactionTable = {
  ...checksTable,
  signature: option.section<Omit<PayoutSignature, "nonces">>("{ keys }", [...fixedBySpec, "nonces"]),
  stores: option.own(transactionOptions.readStores<never>),
  pay: option.call(),
  mayWriteNothing: option.boolean(false),
  outcomes: option.optional(option.own(readOutcomes)),
  idempotency: option.own((value = {}, owner, name) => guardSection.read(value, owner, name), "none"),
} satisfies OptionTable<PayoutTransactionOptions<never, never, TransactionMode>, unknown>;

const guardSection = option.section<PayoutTransactionGuard<never>>('{ scope: "payout" }', [
  ...fixedByWire,
  "store",
  "leaseMs",
]);

/** The options of either form, by whether there is a transaction; nothing is checked yet. */
export function payoutForm<Native>(
  options: object,
):
  | { readonly paid: PayoutTransactionOptions<Native, never, TransactionMode> }
  | { readonly handled: PayoutOptions<Native> } {
  const givesTransaction = ["stores", "pay"].some((name) => Reflect.get(Object(options), name) !== undefined);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the form's own table reads and checks each of them
  return (givesTransaction ? { paid: options } : { handled: options }) as ReturnType<
    typeof payoutForm<Native>
  >;
}

export interface ReadPayoutOptions<Native> extends Omit<
  ReadOptions<typeof table>,
  "idempotency" | "findBusiness" | "stores" | "pay"
> {
  readonly idempotency: KeyOwnerOptions & Pick<PayoutIdempotency<Native>, "fingerprint">;
  readonly findBusiness: FindBusiness<Native> | undefined;
}

const fingerprintRule = option.optional(option.call());

/** Reads the options of the steps. Throws an OptionError of `owner`. */
export function resolveOptions<Native extends object>(
  options: PayoutOptions<Native>,
  owner: OptionOwner,
): ReadPayoutOptions<Native> {
  const read = readOptions(owner, table, options);
  const { signature, maxLengths } = read;
  const { findBusiness, idempotency } = options;
  assertFit(owner, { signature, maxLengths, idempotency });
  return { ...read, findBusiness, idempotency };
}

export type ReadTransactionOptions<Native> = Omit<
  ReadOptions<typeof transactionTable>,
  "idempotency" | "findBusiness"
> & {
  readonly idempotency: PayoutTransactionGuard<Native>;
  readonly findBusiness: FindBusiness<Native> | undefined;
};

/** As {@link resolveOptions}, for the form with a transaction. */
export function resolveTransactionOptions<Native extends object>(
  options: PayoutTransactionOptions<Native, never, TransactionMode>,
  owner: OptionOwner,
): ReadTransactionOptions<Native> {
  const { assertInMode, assertNoLeaseOptions } = transactionOptions;
  // Half of a move from the other form.
  assertNoLeaseOptions(holderOf(owner, "idempotency"), Object(options?.idempotency), leaseOptions);
  assertNoLeaseOptions(holderOf(owner, "signature"), Object(options?.signature), ["nonces"]);
  const read = readOptions(owner, transactionTable, options);
  const { signature, maxLengths } = read;
  assertInMode(read.stores, read.pay, owner, "pay");
  const { findBusiness, idempotency = {} } = options;
  assertFit(owner, { signature, maxLengths, idempotency });
  return { ...read, findBusiness, idempotency };
}

function assertFit(
  owner: OptionOwner,
  {
    signature,
    maxLengths,
    idempotency,
  }: {
    readonly signature: { readonly requiredComponents?: unknown };
    readonly maxLengths: PayoutMaxLengths;
    readonly idempotency: { readonly scope?: string | undefined; readonly fingerprint?: unknown };
  },
): void {
  assertRequiredComponents(holderOf(owner, "signature"), signature.requiredComponents);
  keyLength(longestKey(idempotency.scope)).read(
    maxLengths.idempotencyKey,
    holderOf(owner, "maxLengths"),
    "idempotencyKey",
  );
  fingerprintRule.read(idempotency.fingerprint, holderOf(owner, "idempotency"), "fingerprint");
}

function readOutcomes(outcomes: unknown, owner: OptionOwner, name: string): ExpectedOutcomes<never> {
  const isFit =
    hasMethods<ExpectedOutcomes<never>>(outcomes, "expect") && outcomes.expectWithinMs !== undefined;
  if (isFit) return outcomes;
  throw optionError(owner, name, "what createOutcomes() with expectWithinMs made", outcomes);
}

function readNothing(): undefined {
  return undefined;
}

function readFieldName(field: unknown, owner: OptionOwner, name: string): string {
  // JSON with a member __proto__ is refused before the schema.
  if (typeof field === "string" && field !== "" && field !== "__proto__" && !namedFields.includes(field)) {
    return field;
  }
  const expected = `the name of a field of the body other than ${namedFields.join(", ")}`;
  throw optionError(owner, name, expected, field);
}

// A signature over less would let one part of a payout be exchanged, for example its path on a server with two routes.
function assertRequiredComponents(owner: OptionOwner, components: unknown): void {
  if (components === undefined) return;
  if (Array.isArray(components) && defaultComponents.every((name) => components.includes(name))) return;
  const expected = `a list that includes ${defaultComponents.join(", ")}`;
  throw optionError(owner, "requiredComponents", expected, components);
}

/** The signature's options with the interface's floor below what `policy` returns: an OptionError is 503. */
export function withFloor<Signature extends Pick<PayoutSignature, "policy">>(
  signature: Signature,
  owner: OptionOwner,
): Signature {
  const { policy } = signature;
  // httpSignatureVerifier refuses what is no function.
  if (typeof policy !== "function") return signature;
  const holder = holderOf(owner, "policy");
  const assertFloor = (returned: unknown): void => {
    if (typeof returned !== "object" || returned === null) return;
    const fixed = fixedBySpec.find((name) => Reflect.get(returned, name) !== undefined);
    if (fixed !== undefined)
      throw new OptionError(holder, { option: fixed, what: "is fixed by the interface" });
    assertRequiredComponents(holder, Reflect.get(returned, "requiredComponents"));
  };
  const checked: PayoutPolicyLookup = async (asked) => {
    const returned = await policy(asked);
    assertFloor(returned);
    return returned;
  };
  return { ...signature, policy: checked };
}

/** In UTF-16 units: a store takes keys of 512. */
function longestKey(scope?: string): number {
  return 512 - payoutStoreKey("", scope).length;
}
