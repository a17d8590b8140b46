import { type NonceStore } from "@countersign/core";
import {
  holderOf,
  option,
  optionError,
  readOptions,
  type HeaderFields,
  type OptionOwner,
  type OptionTable,
  type ReadOptions,
} from "@countersign/core/door";
import { wantContentDigest } from "@countersign/content-digest";
import { defaultComponents } from "@countersign/http-message-signatures";
import type { HttpSignatureVerifyOptions } from "@countersign/http-signature-verify";
import type { IdempotencyGuardOptions } from "@countersign/idempotency-guard";
import type { KeyOwnerOptions } from "@countersign/idempotency-guard/door";
import type { IpAllowlistOptions } from "@countersign/ip-allowlist";
import { namedFields, payoutStoreKey } from "./schema.ts";

type PayoutAddresses = Omit<IpAllowlistOptions, "status">;

/** `requiredComponents` must include the interface's four, the default. Options that would accept less cannot be set. */
type PayoutSignature = Omit<HttpSignatureVerifyOptions, FixedBySpec | "nonces"> & {
  readonly nonces: NonceStore;
};

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

/** A known business (or true), or false, undefined or null for an unknown one. */
export type BusinessAnswer = Express.PayoutBusiness | boolean | null | undefined;

/** A throw or a rejection is answered with 503, so that the service tries again. */
type FindBusiness<Native> = (query: BusinessQuery, req: Native) => BusinessAnswer | Promise<BusinessAnswer>;

export interface PayoutOptions<Native> {
  readonly addresses: PayoutAddresses;
  readonly signature: PayoutSignature;
  /** How a payout is done once: options of idempotencyGuard. */
  readonly idempotency: PayoutIdempotency<Native>;
  /** Looks the beneficiary up in the platform's own records. Recommended: without it the money goes to any valid IBAN. */
  readonly findBusiness?: FindBusiness<Native> | undefined;
  /** How long `findBusiness` may take, in milliseconds, before the answer is 503. Default 5,000. */
  readonly lookupTimeoutMs?: number | undefined;
  /** The body's field with the reference text, which the interface does not show. Default none: nothing is checked. */
  readonly referenceField?: string | undefined;
  readonly maxLengths?: PayoutMaxLengths | undefined;
}

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

export const table = {
  addresses: option.section<PayoutAddresses>('{ allow: ["192.0.2.10"] }', ["status"]),
  signature: option.section<PayoutSignature>("{ keys, nonces }", fixedBySpec),
  idempotency: option.section("{ store }", fixedByWire),
  findBusiness: option.shown(option.optional(option.call()), (call) => call !== undefined),
  lookupTimeoutMs: option.integer({ min: 1, max: 60_000, fallback: 5_000 }),
  referenceField: option.optional(option.own(readFieldName)),
  maxLengths: option.group(lengthsTable, "256, 256, 256, 1024"),
} satisfies OptionTable<PayoutOptions<never>, unknown>;

export interface ReadPayoutOptions<Native> extends Omit<
  ReadOptions<typeof table>,
  "idempotency" | "findBusiness"
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
  const { scope } = idempotency;
  assertRequiredComponents(holderOf(owner, "signature"), signature.requiredComponents);
  keyLength(longestKey(scope)).read(
    maxLengths.idempotencyKey,
    holderOf(owner, "maxLengths"),
    "idempotencyKey",
  );
  fingerprintRule.read(idempotency.fingerprint, holderOf(owner, "idempotency"), "fingerprint");
  return { ...read, findBusiness, idempotency };
}

function readFieldName(field: unknown, owner: OptionOwner, name: string): string {
  // JSON with a member __proto__ is refused before the schema.
  if (typeof field === "string" && field !== "" && field !== "__proto__" && !namedFields.includes(field)) {
    return field;
  }
  throw optionError(
    owner,
    name,
    `the name of a field of the body other than ${namedFields.join(", ")}`,
    field,
  );
}

// A signature over less would let one part of a payout be exchanged, for example its path on a server with two routes.
function assertRequiredComponents(owner: OptionOwner, components: unknown): void {
  if (components === undefined) return;
  if (Array.isArray(components) && defaultComponents.every((name) => components.includes(name))) return;
  const expected = `a list that includes ${defaultComponents.join(", ")}`;
  throw optionError(owner, "requiredComponents", expected, components);
}

/** In UTF-16 units: a store takes keys of 512. */
function longestKey(scope?: string): number {
  return 512 - payoutStoreKey("", scope).length;
}
