import type { SignatureAlgorithm } from "./algorithms/algorithm.ts";
import { isCovered } from "./coverage.ts";
import type { BareItem, Parameters } from "./field-scanner.ts";
import { maxKeyidLength, maxNonceLength } from "./limits.ts";
import { MessageSignatureError, type MessageSignatureErrorCode } from "./message-signature-error.ts";
import type { FieldTypes, Message } from "./message.ts";
import {
  assertComputable,
  identityOf,
  parseComponentIdentifier,
  type SignatureInput,
} from "./signature-base.ts";

/** The policy that a signature has to meet (RFC 9421 section 3.2.1). */
export interface SignatureProfile {
  /**
   * Bare names, or full identifiers such as `"@query-param";name="id"`. The signature may cover more, in any order, and in the place of a
   * derived component one that contains it: `@target-uri` also covers `@scheme`, `@authority`, `@path` and `@query`, `@request-target`
   * also `@path` and `@query`. `@query-param` for each parameter covers `@query`; `@query` covers a parameter that is there once.
   */
  readonly requiredComponents: readonly string[];
  /** Components that it must not cover. A bare name means any parameters. Default none. */
  readonly forbiddenComponents?: readonly string[] | undefined;
  /** Default `created`, `expires`, `keyid`, `alg`, `nonce`; those left out may be absent. `keyid` never is: no key is guessed. */
  readonly requiredParameters?:
    | readonly ("alg" | "created" | "expires" | "keyid" | "nonce" | "tag")[]
    | undefined;
  /** Parameters that it must not have, of RFC 9421 or any other. Default none. */
  readonly forbiddenParameters?: readonly string[] | undefined;
  /** Accepted algorithms: of the parameter `alg`, or of the key without it. */
  readonly algorithms: readonly SignatureAlgorithm[];
  /**
   * Largest `expires - created`, in seconds. Without `expires` the signature ends this long after `created`; without `created`, `expires`
   * lies at most this far ahead. Without both, where neither is required, it never ends.
   */
  readonly windowSeconds: number;
  /** How far `created` may lie ahead of the clock, in seconds. */
  readonly clockSkewSeconds: number;
  /** Values of `tag` (RFC 9421 section 2.3): one of `require`, none of `exclude`, compared exactly. Default any, and none at all. */
  readonly tag?:
    | { readonly require?: readonly string[] | undefined; readonly exclude?: readonly string[] | undefined }
    | undefined;
  /** The only label to read. Default any: labels carry no meaning (RFC 9421 section 1.1). */
  readonly label?: string | undefined;
  /** Types of structured fields, for `;sf` and `;key`, beside those of the IANA registry that the engine knows. */
  readonly fieldTypes?: FieldTypes | undefined;
}

/** The signature parameters of RFC 9421 section 2.3. */
export type SignatureParameter = NonNullable<SignatureProfile["requiredParameters"]>[number];

export const defaultParameters: readonly SignatureParameter[] = [
  "created",
  "expires",
  "keyid",
  "alg",
  "nonce",
];

const parameterNames: ReadonlySet<string> = new Set([...defaultParameters, "tag"]);

export function isSignatureParameter(name: string): name is SignatureParameter {
  return parameterNames.has(name);
}

/** A parameter is undefined where the signature has none and the profile lets it. */
export interface SignatureParameters {
  readonly keyid: string;
  readonly alg: SignatureAlgorithm | undefined;
  /** Unix seconds. */
  readonly created: number | undefined;
  /** Unix seconds. */
  readonly expires: number | undefined;
  readonly nonce: string | undefined;
  readonly tag?: string | undefined;
}

/** Throws a MessageSignatureError when the signature does not fit the profile. */
export function readSignatureParameters(
  input: SignatureInput,
  profile: SignatureProfile,
  message: Message,
): SignatureParameters {
  assertCoverage(input, profile, message);
  const { parameters } = input;
  const { requiredParameters = defaultParameters, forbiddenParameters } = profile;
  const forbidden = forbiddenParameters?.find((name) => parameters.has(name));
  if (forbidden !== undefined) {
    throw new MessageSignatureError("parameter-forbidden", `the signature has the parameter ${forbidden}`);
  }
  // A misspelt name would require nothing.
  if (requiredParameters !== defaultParameters && !requiredParameters.every(isSignatureParameter)) {
    throw new TypeError("a required parameter is none of RFC 9421");
  }
  // some(), not includes(): a string in place of a list would match by a part.
  const isDue = (name: SignatureParameter): boolean =>
    parameters.has(name) || requiredParameters.some((required) => required === name);

  const alg = isDue("alg") ? readAlg(parameters, profile) : undefined;
  const keyid = readString(parameters, "keyid", maxKeyidLength);
  const created = isDue("created") ? readUnixSeconds(parameters, "created") : undefined;
  const expires = isDue("expires") ? readUnixSeconds(parameters, "expires") : undefined;
  if (created !== undefined && expires !== undefined && expires <= created) {
    const what = `expires is not later than created${unitHint({ created, expires })}`;
    throw new MessageSignatureError("expires-invalid", what);
  }
  const nonce = isDue("nonce") ? readString(parameters, "nonce", maxNonceLength) : undefined;
  return { keyid, alg, created, expires, nonce, tag: readTag(parameters, profile.tag, isDue("tag")) };
}

// Compared as full identifiers: "content-digest";req is another component than "content-digest".
function assertCoverage({ components }: SignatureInput, profile: SignatureProfile, message: Message): void {
  const covered = assertComputable(components, message, profile.fieldTypes);
  for (const required of profile.requiredComponents) {
    if (!isCovered(required, covered, message)) {
      throw new MessageSignatureError("component-required", `the signature does not cover ${required}`);
    }
  }
  const forbidden = profile.forbiddenComponents?.find((text) => {
    const component = parseComponentIdentifier(text);
    return component.parameters.size === 0
      ? components.some(({ name }) => name === component.name)
      : covered.has(identityOf(component));
  });
  if (forbidden !== undefined) {
    throw new MessageSignatureError("component-forbidden", `the signature covers ${forbidden}`);
  }
}

function readAlg(parameters: Parameters, { algorithms }: SignatureProfile): SignatureAlgorithm {
  const received = readString(parameters, "alg", 64);
  const alg = algorithms.find((allowed) => allowed === received);
  if (alg !== undefined) return alg;
  throw new MessageSignatureError("alg-mismatch", "alg is not one of the algorithms taken");
}

function readTag(
  parameters: Parameters,
  policy: SignatureProfile["tag"],
  isDue: boolean,
): string | undefined {
  const item = parameters.get("tag");
  if (item === undefined && isDue) throw invalid("tag", "is missing");
  if (item !== undefined && item.type !== "string") throw invalid("tag", "must be a string");
  const tag = item?.type === "string" ? item.value : undefined;
  const { require: required, exclude: excluded } = policy ?? {};
  // Again some().
  const isRequired = required === undefined || required.some((value) => value === tag);
  const isExcluded = excluded?.some((value) => value === tag) ?? false;
  if (!isRequired || isExcluded) {
    throw new MessageSignatureError("tag-mismatch", "tag is not one of the values taken");
  }
  return tag;
}

/** The keyid and tag of a signature; undefined where one of them is malformed, which no profile accepts. */
export function signatureIdentity({
  parameters,
}: SignatureInput): { readonly keyid: string; readonly tag: string | undefined } | undefined {
  const keyid = parameters.get("keyid");
  const tag = parameters.get("tag");
  if (keyid?.type !== "string" || keyid.value === "" || keyid.value.length > maxKeyidLength) return undefined;
  if (tag !== undefined && tag.type !== "string") return undefined;
  return { keyid: keyid.value, tag: tag?.value };
}

function readString(parameters: Parameters, name: SignatureParameter, maxLength: number): string {
  const item = readParameter(parameters, name);
  if (item.type !== "string" || item.value === "" || item.value.length > maxLength) {
    throw invalid(name, `must be a string of 1 to ${maxLength} characters`);
  }
  return item.value;
}

function readUnixSeconds(parameters: Parameters, name: "created" | "expires"): number {
  const item = readParameter(parameters, name);
  if (item.type !== "integer" || item.value < 0) {
    throw invalid(name, "must be an integer of Unix seconds");
  }
  return item.value;
}

function readParameter(parameters: Parameters, name: SignatureParameter): BareItem {
  const item = parameters.get(name);
  if (item === undefined) throw invalid(name, "is missing");
  return item;
}

const invalidCodes: Readonly<Record<SignatureParameter, MessageSignatureErrorCode>> = {
  alg: "alg-invalid",
  created: "created-invalid",
  expires: "expires-invalid",
  keyid: "keyid-invalid",
  nonce: "nonce-invalid",
  tag: "tag-invalid",
};

function invalid(name: SignatureParameter, what: string): MessageSignatureError {
  return new MessageSignatureError(invalidCodes[name], `${name} ${what}`);
}

type Times = Pick<SignatureParameters, "created" | "expires">;

/** Returns the last second at which a signature passes; undefined when it never ends. */
export function endOf({ created, expires }: Times, windowSeconds: number): number | undefined {
  return expires ?? (created === undefined ? undefined : created + windowSeconds);
}

/** From the year 5138 on, as seconds: whoever sends that has sent milliseconds. */
function unitHint({ created = 0, expires = 0 }: Times): string {
  return Math.max(created, expires) < 1e11 ? "" : "; it looks like milliseconds, and has to be Unix seconds";
}

/**
 * Checks `created` and `expires` against `now`, in Unix seconds with fractions (spec and RFC 9421 section 3.2.1). Both limits
 * are inclusive. Throws a MessageSignatureError: `window-too-long`, `created-in-future`, `signature-expired`.
 */
export function assertTimely(
  times: Times,
  { windowSeconds, clockSkewSeconds }: Pick<SignatureProfile, "windowSeconds" | "clockSkewSeconds">,
  now: number,
): void {
  const { created } = times;
  const end = endOf(times, windowSeconds);
  if (end === undefined) return;
  // Negated: a missing option or a NaN clock refuses. Without created, a signer ahead by the skew may have signed just now.
  if (!(end - (created ?? now + clockSkewSeconds) <= windowSeconds)) {
    const what = `the signature is valid for more than ${windowSeconds} seconds${unitHint(times)}`;
    throw new MessageSignatureError("window-too-long", what);
  }
  if (created !== undefined && !(created <= now + clockSkewSeconds)) {
    throw new MessageSignatureError("created-in-future", `created lies in the future${unitHint(times)}`);
  }
  if (!(now <= end)) throw new MessageSignatureError("signature-expired", "the signature has expired");
}
