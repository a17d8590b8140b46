import { hash } from "node:crypto";
import {
  assertFunction,
  assertKnownOptions,
  integerOption,
  optionError,
  type GuardErrorsOptions,
  type GuardRequest,
} from "@countersign/guard";
import { verifiedDigest, wantContentDigest } from "@countersign/content-digest";
import { defaultComponents } from "@countersign/http-message-signatures";
import type { HttpSignatureVerifyOptions } from "@countersign/http-signature-verify";
import type { IdempotencyGuardOptions } from "@countersign/idempotency-guard";
import type { IpAllowlistOptions } from "@countersign/ip-allowlist";
import { capturedRawBody } from "@countersign/raw-body";
import type { FindBusiness } from "./find-business.ts";
import { payoutStoreKey } from "./idempotency-key.ts";
import { payoutOf } from "./payout.ts";
import { namedFields, type PayoutSchemaOptions } from "./schema.ts";

/** Longest accepted texts, in UTF-16 units. The interface shows no lengths; these keep a caller from filling a database. */
export interface PayoutMaxLengths {
  /** Default 256, at most 505, less with a longer `scope`: a store takes keys of 512 characters, and `payout:` is put before it. */
  readonly idempotencyKey?: number | undefined;
  /** Default 256. */
  readonly businessId?: number | undefined;
  /** Default 256. */
  readonly beneficiaryName?: number | undefined;
  /** Default 1024. */
  readonly reference?: number | undefined;
}

/** Options of `payoutEndpoint`: its own, those of httpSignatureVerify and those of idempotencyGuard. */
export interface PayoutEndpointOptions
  extends Omit<HttpSignatureVerifyOptions, "algorithms">, Omit<IdempotencyGuardOptions, "key" | "scope"> {
  /**
   * What stands before the idempotency_key in the store, with a colon: 1 to 32 lower-case letters, digits, `-` and `_`. Default
   * `payout`. Required where the store is given to a second endpoint or guard.
   */
  readonly scope?: string | undefined;
  /** The addresses and CIDR blocks from which the lending service calls. Must not be empty. */
  readonly allowIps: IpAllowlistOptions["allow"];
  /** Accept `allowIps` that together admit every address of a family. Default false. */
  readonly dangerouslyAllowAnyAddress?: boolean | undefined;
  /** Components that a signature has to cover: the interface's four at least. Default these four. */
  readonly requiredComponents?: readonly string[] | undefined;
  /** Looks the beneficiary up in the platform's own records. Recommended: without it the money goes to any valid IBAN. */
  readonly findBusiness?: FindBusiness | undefined;
  /** How long `findBusiness` may take, in milliseconds, before the answer is 503. Default 5,000. */
  readonly lookupTimeoutMs?: number | undefined;
  /** The name of the field with the reference text, which the interface does not show. Default none: nothing is checked. */
  readonly referenceField?: string | undefined;
  readonly maxLengths?: PayoutMaxLengths | undefined;
  /** `respond`: the chain answers its own rejections. `forward`: the app's own `guardErrors()` has to. Default `respond`. */
  readonly errors?: "respond" | "forward" | undefined;
  /** Called once for each rejection that the chain answers. Its own throw becomes a process warning. */
  readonly onReject?: GuardErrorsOptions["onReject"];
}

/** The options of each part of the chain. What a middleware owns is checked by that middleware. */
export interface ResolvedOptions {
  readonly addresses: IpAllowlistOptions;
  readonly signature: HttpSignatureVerifyOptions;
  readonly schema: PayoutSchemaOptions;
  readonly idempotency: IdempotencyGuardOptions;
  readonly lookup: { readonly findBusiness: FindBusiness; readonly timeoutMs: number } | undefined;
  readonly answers: GuardErrorsOptions | undefined;
}

const factory = "payoutEndpoint";

const known: Readonly<Record<keyof PayoutEndpointOptions, true>> = {
  keys: true,
  nonces: true,
  allowIps: true,
  store: true,
  findBusiness: true,
  referenceField: true,
  requiredComponents: true,
  tag: true,
  windowSeconds: true,
  clockSkewSeconds: true,
  pathPrefix: true,
  origin: true,
  clock: true,
  limit: true,
  leaseMs: true,
  waitMs: true,
  pollMs: true,
  recovery: true,
  scope: true,
  fingerprint: true,
  storeTimeoutMs: true,
  handlerTimeoutMs: true,
  lookupTimeoutMs: true,
  maxWaiters: true,
  maxLengths: true,
  reusedStatus: true,
  retryAfterSeconds: true,
  heldRetryAfterSeconds: true,
  allowUnsignedQuery: true,
  dangerouslyAllowAnyAddress: true,
  errors: true,
  onReject: true,
};

/** Distributes the options over the chain and fills in the defaults. Throws a TypeError on a bad option of the endpoint itself. */
export function resolveOptions(options: PayoutEndpointOptions): ResolvedOptions {
  assertKnownOptions(factory, options, Object.keys(known));
  return {
    addresses: {
      allow: options.allowIps,
      dangerouslyAllowAnyAddress: options.dangerouslyAllowAnyAddress,
    },
    signature: resolveSignature(options),
    schema: {
      referenceField: resolveReferenceField(options.referenceField),
      maxLengths: resolveMaxLengths(options),
    },
    idempotency: resolveIdempotency(options),
    lookup: resolveLookup(options),
    answers: resolveAnswers(options),
  };
}

function resolveSignature(options: PayoutEndpointOptions): HttpSignatureVerifyOptions {
  const { requiredComponents } = options;
  // A signature over less would let one part of a payout be exchanged, for example its path on a server with two routes.
  if (
    requiredComponents !== undefined &&
    !(
      Array.isArray(requiredComponents) &&
      defaultComponents.every((name) => requiredComponents.includes(name))
    )
  ) {
    const expected = `a list that includes ${defaultComponents.join(", ")}`;
    throw optionError(factory, "requiredComponents", expected, requiredComponents);
  }
  return {
    keys: options.keys,
    nonces: options.nonces,
    requiredComponents,
    tag: options.tag,
    windowSeconds: options.windowSeconds,
    clockSkewSeconds: options.clockSkewSeconds,
    pathPrefix: options.pathPrefix,
    origin: options.origin,
    allowUnsignedQuery: options.allowUnsignedQuery,
    limit: options.limit,
    storeTimeoutMs: options.storeTimeoutMs,
    clock: options.clock,
  };
}

function resolveIdempotency({ scope, ...options }: PayoutEndpointOptions): IdempotencyGuardOptions {
  return {
    store: options.store,
    // Without the keyid: a key that was paid under the old public key must not be paid again under the new one.
    key: (req) => {
      const { idempotencyKey } = payoutOf(req);
      return scope === undefined ? payoutStoreKey(idempotencyKey) : idempotencyKey;
    },
    scope,
    // Not for null, which the guard refuses.
    fingerprint: options.fingerprint === undefined ? verifiedBytesFingerprint : options.fingerprint,
    leaseMs: options.leaseMs,
    waitMs: options.waitMs,
    pollMs: options.pollMs,
    recovery: options.recovery,
    storeTimeoutMs: options.storeTimeoutMs,
    handlerTimeoutMs: options.handlerTimeoutMs,
    maxWaiters: options.maxWaiters,
    reusedStatus: options.reusedStatus,
    retryAfterSeconds: options.retryAfterSeconds,
    heldRetryAfterSeconds: options.heldRetryAfterSeconds,
  };
}

// Not of req.rawBody: another middleware may have written to it since.
function verifiedBytesFingerprint(req: GuardRequest): string {
  const digest = verifiedDigest(req, "sha-256");
  if (digest !== undefined) return digest.toString("base64url");
  const bytes = capturedRawBody(req);
  if (bytes === undefined) {
    throw new Error("payoutEndpoint: the body was not captured by the signature guard");
  }
  return hash("sha256", bytes, "base64url");
}

function resolveLookup({ findBusiness, lookupTimeoutMs }: PayoutEndpointOptions): ResolvedOptions["lookup"] {
  const timeoutMs = integerOption(factory, "lookupTimeoutMs", lookupTimeoutMs, {
    min: 1,
    max: 60_000,
    fallback: 5_000,
  });
  if (findBusiness === undefined) return undefined;
  assertFunction(factory, "findBusiness", findBusiness);
  return { findBusiness, timeoutMs };
}

function resolveAnswers({ errors = "respond", onReject }: PayoutEndpointOptions): ResolvedOptions["answers"] {
  if (errors === "respond") {
    return { onReject, unauthorizedHeaders: { "Want-Content-Digest": wantContentDigest(["sha-256"]) } };
  }
  if (errors !== "forward") throw optionError(factory, "errors", '"respond" or "forward"', errors);
  if (onReject === undefined) return undefined;
  throw new TypeError(
    `${factory}: option onReject has no effect with errors: "forward"; give it to the app's guardErrors() instead`,
  );
}

function resolveReferenceField(field: string | undefined): string | undefined {
  if (field === undefined) return undefined;
  // JSON with a member __proto__ is refused before the schema.
  if (typeof field !== "string" || field === "" || field === "__proto__" || namedFields.includes(field)) {
    const expected = `the name of a field of the body other than ${namedFields.join(", ")}`;
    throw optionError(factory, "referenceField", expected, field);
  }
  return field;
}

function resolveMaxLengths({
  maxLengths = {},
  scope,
}: PayoutEndpointOptions): PayoutSchemaOptions["maxLengths"] {
  assertKnownOptions(`${factory}: option maxLengths`, maxLengths, [
    "idempotencyKey",
    "businessId",
    "beneficiaryName",
    "reference",
  ]);
  const length = (name: keyof PayoutMaxLengths, fallback: number, max = 100_000): number =>
    integerOption(factory, `maxLengths.${name}`, maxLengths[name], { min: 1, max, fallback });
  return {
    idempotencyKey: length("idempotencyKey", 256, 512 - payoutStoreKey("", scope).length),
    businessId: length("businessId", 256),
    beneficiaryName: length("beneficiaryName", 256),
    reference: length("reference", 1024),
  };
}
