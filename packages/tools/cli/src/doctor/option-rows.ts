import type { Built, BuiltFact } from "@countersign/core/internal";
import { defaultComponents } from "@countersign/http-message-signatures";
import { coveringComponents } from "@countersign/http-message-signatures/internal";
import { memberOf } from "../command-io.ts";
import { shownKey } from "../operator/key-text.ts";
import type { FindingId, Row } from "./findings.ts";

export interface ReadOption {
  readonly value: BuiltFact;
  readonly factory: string;
  /** Unix seconds. */
  readonly now: number;
  readonly isProduction: boolean;
}

type OptionRow = readonly [id: FindingId, option: string, says: Row<ReadOption>[1]];

const isTrue =
  (text: string): OptionRow[2] =>
  (read) =>
    read.value === true && text;
const isShort =
  (text: string): OptionRow[2] =>
  (read) =>
    memberOf(read.value, "short") === true && text;
const shortPassword = isShort("has a password of less than 12 characters");
const shortSecret = isShort("has a secret of less than 16 bytes");
const dayMs = 86_400_000;

/** What to say about an option, wherever one of this name was read; its place goes before. */
export const optionRows: readonly OptionRow[] = [
  [
    "connection-unset",
    "clientAddress",
    ({ value, factory }) =>
      value === false &&
      factory === "payoutPlugin" &&
      "has no clientAddress: behind a proxy, every request has the address of that proxy, and is 401",
  ],
  [
    "connection-unset",
    "scheme",
    ({ value, factory }) =>
      value === false &&
      factory === "webhookPlugin" &&
      "has no scheme: behind a proxy, every request that came by TLS is taken for http",
  ],
  ["address-any", "dangerouslyAllowAnyAddress", isTrue("may admit every address")],
  [
    "memory-store",
    "allowInProduction",
    () => "forgets everything with its process, and no other process knows it",
  ],
  [
    "components-missing",
    "requiredComponents",
    ({ value }) => listed("takes signatures that do not cover", missingComponents(value), ", "),
  ],
  ["body-unsigned", "allowUnsignedBody", isTrue("takes a body that no signature covers")],
  ["query-unsigned", "allowUnsignedQuery", isTrue("takes a query that no signature covers")],
  [
    "nonce-missing",
    "requiredParameters",
    ({ value }) =>
      !textsOf(value).includes("nonce") &&
      "requires no nonce: within its window, a request can be sent again",
  ],
  [
    "key-none-valid",
    "keys",
    ({ value, now }) => {
      const keys = keysOf(value);
      const isValid = (key: Key): boolean =>
        key.notBefore <= now && now <= key.notAfter && now < key.revokedAt;
      return keys.length > 0 && !keys.some(isValid) && "has no key that is valid now";
    },
  ],
  ["key-duplicate", "keys", ({ value }) => listed("has the same key as", duplicatesOf(value), ", and as ")],
  [
    "key-for-tests",
    "keys",
    ({ value, isProduction }) =>
      isProduction && listed("takes signatures of the key", testKeysOf(value), " and "),
  ],
  ["credentials-short", "password", shortPassword],
  ["credentials-short", "credentials", shortPassword],
  ["credentials-short", "secret", shortSecret],
  ["credentials-short", "secrets", shortSecret],
  [
    "beneficiary-unchecked",
    "findBusiness",
    ({ value }) => value === false && "has no findBusiness: it pays to any valid IBAN",
  ],
  ["webhook-http", "dangerouslyAllowHttp", isTrue("takes webhooks over plain http")],
  [
    "keys-not-listable",
    "store",
    ({ value }) => memberOf(value, "lists") !== true && "has a store without list()",
  ],
  [
    "retention-short",
    "store",
    ({ value }) => {
      const retentionMs = Number(memberOf(value, "retentionMs") ?? dayMs);
      return retentionMs < dayMs && `has a store that forgets a paid key after ${retentionMs / 3_600_000} h`;
    },
  ],
];

const soonSeconds = 14 * 86_400;

/** What to say about a configured key, by its first row; nothing is known of keys that are looked up. */
export const keyRows: readonly Row<Key & { readonly now: number }>[] = [
  ["key-revoked", ({ revokedAt, now }) => revokedAt <= now && `was revoked on ${dayOf(revokedAt)}`],
  ["key-expired", ({ notAfter, now }) => notAfter < now && `ended on ${dayOf(notAfter)}`],
  ["key-not-yet-valid", ({ notBefore, now }) => notBefore > now && `is valid from ${dayOf(notBefore)} on`],
  [
    "key-ends-soon",
    ({ notAfter, revokedAt, now }) => {
      const end = Math.min(notAfter, revokedAt);
      return end < now + soonSeconds && `ends on ${dayOf(end)}`;
    },
  ],
];

function listed(says: string, names: readonly string[], separator: string): string | false {
  return names.length > 0 && `${says} ${names.join(separator)}`;
}

function missingComponents(required: BuiltFact): readonly string[] {
  const bare = new Set(textsOf(required).map((name) => /^"?([^";]+)/.exec(name)?.[1] ?? name));
  return defaultComponents.filter(
    (name) => !(coveringComponents.get(name) ?? [name]).some((one) => bare.has(one)),
  );
}

interface Key {
  readonly keyid: string;
  /** Undefined of a secret. */
  readonly thumbprint: string | undefined;
  /** Unix seconds, or infinite, like the next two. */
  readonly notBefore: number;
  readonly notAfter: number;
  readonly revokedAt: number;
}

export function keysOf(fact: BuiltFact | undefined): readonly Key[] {
  if (!Array.isArray(fact)) return [];
  return fact.filter(isFacts).map(({ keyid, thumbprint, notBefore, notAfter, revokedAt }) => ({
    keyid: typeof keyid === "string" ? keyid : "",
    thumbprint: typeof thumbprint === "string" ? thumbprint : undefined,
    notBefore: Number(notBefore ?? -Infinity),
    notAfter: Number(notAfter ?? Infinity),
    revokedAt: Number(revokedAt ?? Infinity),
  }));
}

function isFacts(fact: BuiltFact): fact is Built["facts"] {
  return typeof fact === "object" && fact !== null && !Array.isArray(fact);
}

function testKeysOf(fact: BuiltFact): readonly string[] {
  return keysOf(fact).flatMap(({ keyid }) => (/^test(?:$|[-_.])/i.test(keyid) ? [shownKey(keyid)] : []));
}

function duplicatesOf(fact: BuiltFact): readonly string[] {
  const keys = keysOf(fact);
  return keys.flatMap(({ keyid, thumbprint }, at) => {
    const first = keys.findIndex((key) => thumbprint !== undefined && key.thumbprint === thumbprint);
    const same = keys[first];
    return same === undefined || first === at ? [] : [`${shownKey(same.keyid)} and ${shownKey(keyid)}`];
  });
}

function textsOf(fact: BuiltFact): readonly string[] {
  return Array.isArray(fact) ? fact.filter((text): text is string => typeof text === "string") : [];
}

function dayOf(unixSeconds: number): string {
  return new Date(unixSeconds * 1000).toISOString().slice(0, 10);
}
