import { KeyObject } from "node:crypto";
import { types } from "node:util";
import type { SignatureAlgorithm } from "./algorithms/algorithm.ts";
import type { PublicKeyInput } from "./public-key-input.ts";
import { isRecord, unixSeconds, type KeyValidity } from "./verification-key.ts";

/**
 * The validity that a key states itself: of a JWK `nbf` and `exp` as notBefore and notAfter, `revoked.revoked_at` as revokedAt (JSON
 * Web Key Parameters registry, OpenID Federation 1.0 section 8.7.2); of a JWK Set the narrowest of all that may be meant by the keyid;
 * of other forms nothing. The input is one that was imported. Throws a TypeError on members of another type.
 */
export function statedValidity(
  input: PublicKeyInput,
  { keyid, alg }: { readonly keyid: string; readonly alg: SignatureAlgorithm },
): KeyValidity {
  // The bytes of a secret may look like anything.
  const isSecret = alg === "hmac-sha256" && types.isUint8Array(input);
  const jwk = isSecret ? undefined : jwkOf(input);
  if (jwk === undefined) return {};
  const { keys } = jwk;
  if (!Array.isArray(keys)) return jwkValidity(jwk);
  return keys
    .filter((one): one is JwkMembers => isRecord(one) && (one["kid"] === undefined || one["kid"] === keyid))
    .map(jwkValidity)
    .reduce(bothValidities, {});
}

/** Both of two validities: the narrower in each time. What has no order is the first one's, or else the other's. */
export function bothValidities(one: KeyValidity, other: KeyValidity): KeyValidity {
  return {
    notBefore: outermost(Math.max, one.notBefore, other.notBefore),
    notAfter: outermost(Math.min, one.notAfter, other.notAfter),
    revokedAt: outermost(Math.min, one.revokedAt, other.revokedAt),
    retired: one.retired === true || other.retired === true,
    scope: one.scope ?? other.scope,
    subject: one.subject ?? other.subject,
  };
}

type JwkMembers = Readonly<Record<string, unknown>>;

function jwkOf(input: PublicKeyInput): JwkMembers | undefined {
  if (input instanceof KeyObject) return undefined;
  if (types.isUint8Array(input)) return jwkOfText(Buffer.from(input).toString("utf8"));
  if (typeof input === "string") return jwkOfText(input);
  return { ...input };
}

// The bytes of a key may begin like a text: what cannot be parsed was read as something else.
function jwkOfText(text: string): JwkMembers | undefined {
  if (!text.trimStart().startsWith("{")) return undefined;
  try {
    const content: unknown = JSON.parse(text);
    return isRecord(content) ? content : undefined;
  } catch {
    return undefined;
  }
}

function jwkValidity({ nbf, exp, revoked }: JwkMembers): KeyValidity {
  return {
    notBefore: unixSeconds("nbf", nbf),
    notAfter: unixSeconds("exp", exp),
    revokedAt: revoked === undefined ? undefined : revokedTime(revoked),
  };
}

function revokedTime(revoked: unknown): number {
  const revokedAt = isRecord(revoked) ? unixSeconds("revoked_at", revoked["revoked_at"]) : undefined;
  // One that is revoked at no known time is revoked.
  return revokedAt ?? 0;
}

function outermost(
  choose: (one: number, other: number) => number,
  one: number | undefined,
  other: number | undefined,
): number | undefined {
  return one === undefined || other === undefined ? (one ?? other) : choose(one, other);
}
