import { KeyObject } from "node:crypto";
import { isRecord, unixSeconds, type KeyValidity } from "./verification-key.ts";

/**
 * The validity that a key states itself: of a JWK `nbf` and `exp` as notBefore and notAfter, `revoked.revoked_at` as revokedAt (JSON
 * Web Key Parameters registry, OpenID Federation 1.0 section 8.7.2); of a JWK Set the narrowest of all that may be meant by the keyid;
 * of other forms nothing. `content` was imported. Throws a TypeError on members of another type.
 */
export function statedValidity(content: unknown, keyid: string): KeyValidity {
  if (content instanceof KeyObject || !isRecord(content)) return {};
  const { keys } = content;
  if (!Array.isArray(keys)) return jwkValidity(content);
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
