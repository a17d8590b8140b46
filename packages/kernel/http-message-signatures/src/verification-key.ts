import type { KeyObject } from "node:crypto";
import type { SignatureAlgorithm } from "./algorithms/algorithm.ts";
import type { MessageSignatureErrorCode } from "./message-signature-error.ts";

/** `what` says what was given and what to write instead, and shows nothing of the key. */
export function keyError(what: string): TypeError {
  return new TypeError(`importVerificationKey: ${what}`);
}

export function privateKeyError(got: string): TypeError {
  return keyError(
    `${got} is a private key; it belongs to the signer alone. Give the public key: openssl pkey -in private.pem -pubout`,
  );
}

/** For what a key may be used; an absent member leaves it open. */
interface KeyScope {
  /** Paths that the key may sign, compared as signed: an entry ending in a slash is a prefix, any other the whole path. At least one. */
  readonly paths?: readonly string[] | undefined;
  /** The name of the environment, such as `production`, that the verifier has to give. */
  readonly environment?: string | undefined;
}

/** When, for what and for whom a key is valid. */
export interface KeyValidity {
  /** Signatures with an earlier `created` are refused. Unix seconds. */
  readonly notBefore?: number | undefined;
  /** Signatures with a later `created` are refused. Unix seconds. */
  readonly notAfter?: number | undefined;
  /** From then on every signature is refused, since a thief can date one back; before, those `created` at or after it. Unix seconds. */
  readonly revokedAt?: number | undefined;
  /** A retired key verifies nothing; unlike an unknown one it is named in the log. */
  readonly retired?: boolean | undefined;
  /** Requests outside of it are refused. */
  readonly scope?: KeyScope | undefined;
  /** Whose key it is, such as a tenant; 1 to 256 characters without control characters. */
  readonly subject?: string | undefined;
}

/** A public key, or hmac-sha256 secret, vetted by importVerificationKey(). */
export interface VerificationKey extends KeyValidity {
  readonly keyid: string;
  /** The one algorithm that the key verifies by. */
  readonly alg: SignatureAlgorithm;
  /** For hmac-sha256 the secret. */
  readonly publicKey: KeyObject;
}

const vetted = new WeakSet();

/** For importVerificationKey() alone: {@link isVerificationKey} knows the record from then on. */
export function asVetted(key: VerificationKey): VerificationKey {
  vetted.add(key);
  return Object.freeze(key);
}

/** Whether `value` came from importVerificationKey(); a look-alike object was never vetted. */
export function isVerificationKey(value: unknown): value is VerificationKey {
  return typeof value === "object" && value !== null && vetted.has(value);
}

export interface KeyContext {
  /** Unix seconds; default the system clock. */
  readonly now?: number | undefined;
  /** The verifier's environment; without one, no key of an environment verifies anything. */
  readonly environment?: string | undefined;
}

export interface Fault {
  readonly code: MessageSignatureErrorCode;
  readonly message: string;
}

// The year 5138. Milliseconds of today are beyond it: a key revoked at these would be used for ever.
const latestSeconds = 99_999_999_999;
const maxTextLength = 256;
const maxPaths = 100;
const textPattern = /^[^\p{Cc}\p{Cs}]+$/u;
// What `@path` can be: visible ASCII from the first slash on, without a query (RFC 9421 section 2.2.6).
const pathPattern = /^\/[!-~]*$/;
/** Checks and copies a validity. Throws a TypeError; also for a member that it does not know, which must not be ignored. */
export function readKeyValidity(validity: KeyValidity): KeyValidity {
  assertMembers("options", validity, ["notBefore", "notAfter", "revokedAt", "retired", "scope", "subject"]);
  const { retired = false } = validity;
  if (typeof retired !== "boolean") throw keyError("retired must be true or false");
  const notBefore = unixSeconds("notBefore", validity.notBefore);
  const notAfter = unixSeconds("notAfter", validity.notAfter);
  const revokedAt = unixSeconds("revokedAt", validity.revokedAt);
  if (notBefore !== undefined && notAfter !== undefined && notBefore > notAfter) {
    throw keyError("notBefore must not be later than notAfter");
  }
  const scope = readScope(validity.scope);
  return { notBefore, notAfter, revokedAt, retired, scope, subject: shortText("subject", validity.subject) };
}

/** Why the key cannot be used for a signature that was made at `created` for `path`; undefined when it can. */
export function validityFault(
  { notBefore, notAfter, revokedAt = Infinity, retired, scope }: KeyValidity,
  { created, path }: { readonly created: number | undefined; readonly path: string | undefined },
  { now = Date.now() / 1000, environment }: KeyContext,
): Fault | undefined {
  // Negated, so that a clock that gives NaN refuses.
  if (!(now < revokedAt && (created ?? now) < revokedAt)) {
    return { code: "key-revoked", message: "the key is revoked" };
  }
  // A signature that does not say when it was created shows nothing about a key with limits.
  const hasLimits = notBefore !== undefined || notAfter !== undefined;
  const isWithin = (at: number): boolean => at >= (notBefore ?? 0) && at <= (notAfter ?? Infinity);
  if (retired === true || !(created === undefined ? !hasLimits : isWithin(created))) {
    return { code: "key-retired", message: "the key was not valid when the signature was created" };
  }
  if (scope === undefined) return undefined;
  if (scope.environment !== undefined && scope.environment !== environment) {
    return { code: "key-scope", message: "the key is one of another environment" };
  }
  if (scope.paths?.some((allowed) => path !== undefined && includesPath(allowed, path)) === false) {
    return { code: "key-scope", message: "the key is not for this path" };
  }
  return undefined;
}

function includesPath(allowed: string, path: string): boolean {
  return allowed.endsWith("/") ? path.startsWith(allowed) : path === allowed;
}

function readScope(scope: KeyScope | undefined): KeyScope | undefined {
  if (scope === undefined) return undefined;
  assertMembers("scope", scope, ["paths", "environment"]);
  const { paths, environment } = scope;
  // A scope that says nothing would leave everything open to whoever meant to limit it.
  if (paths === undefined && environment === undefined)
    throw keyError("scope has neither paths nor environment");
  return Object.freeze({ paths: readPaths(paths), environment: shortText("scope.environment", environment) });
}

function readPaths(paths: unknown): readonly string[] | undefined {
  if (paths === undefined) return undefined;
  const list: readonly unknown[] = Array.isArray(paths) ? Array.from<unknown>(paths) : [];
  const sound = list.filter(isPath);
  if (list.length > 0 && list.length <= maxPaths && sound.length === list.length) return Object.freeze(sound);
  throw keyError(
    `scope.paths must be a list of 1 to ${maxPaths} paths such as "/api/v1/transaction", or "/api/" for all below it`,
  );
}

function isPath(path: unknown): path is string {
  return typeof path === "string" && pathPattern.test(path) && !/[?#]/.test(path);
}

function shortText(name: string, value: unknown): string | undefined {
  if (value === undefined) return undefined;
  if (typeof value === "string" && value.length <= maxTextLength && textPattern.test(value)) return value;
  throw keyError(`${name} must be 1 to ${maxTextLength} characters without control characters`);
}

/** A time of a validity. Throws a TypeError that names the member. */
export function unixSeconds(name: string, value: unknown): number | undefined {
  if (value === undefined) return undefined;
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= 0 && value <= latestSeconds)
    return value;
  const hint = typeof value === "number" && value > latestSeconds ? ": this looks like milliseconds" : "";
  throw keyError(`${name} must be a whole number of Unix seconds${hint}`);
}

function assertMembers(name: string, value: unknown, known: readonly string[]): void {
  if (!isRecord(value)) throw keyError(`${name} must be an object`);
  const unknown = Object.keys(value).find((member) => !known.includes(member));
  if (unknown === undefined) return;
  throw keyError(`${name} has an unknown member; known ones are ${known.join(", ")}`);
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
