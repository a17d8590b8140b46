import type { Built, BuiltFact } from "@countersign/core/door";
import { defaultComponents } from "@countersign/http-message-signatures";
import { shownKey } from "../operator/key-text.ts";
import type { FindingId } from "./findings.ts";

/** What findings depend on beside the app. */
export interface Surroundings {
  /** Unix seconds. */
  readonly now: number;
  readonly isProduction: boolean;
}

type OptionRow = readonly [
  id: FindingId,
  option: string,
  when: (value: BuiltFact, around: Surroundings, factory: string) => boolean,
  says: string | ((value: BuiltFact) => string),
];

const isTrue: OptionRow[2] = (value) => value === true;
const isFalse: OptionRow[2] = (value) => value === false;
const isShort: OptionRow[2] = (value) => memberOf(value, "short") === true;
const dayMs = 86_400_000;

/** Of an option, wherever one of this name was read: behind the name of its place. */
export const optionRows: readonly OptionRow[] = [
  [
    "connection-unset",
    "clientAddress",
    (given, _around, factory) => given === false && factory === "payoutPlugin",
    "has no clientAddress: behind a proxy, every request has the address of that proxy, and is 401",
  ],
  [
    "connection-unset",
    "scheme",
    (given, _around, factory) => given === false && factory === "webhookPlugin",
    "has no scheme: behind a proxy, every request that came by TLS is taken for http",
  ],
  ["address-any", "dangerouslyAllowAnyAddress", isTrue, "may admit every address"],
  [
    "memory-store",
    "allowInProduction",
    () => true,
    "forgets everything with its process, and no other process knows it",
  ],
  [
    "components-missing",
    "requiredComponents",
    (required) => missingComponents(required).length > 0,
    (required) => `takes signatures that do not cover ${missingComponents(required).join(", ")}`,
  ],
  ["body-unsigned", "allowUnsignedBody", isTrue, "takes a body that no signature covers"],
  ["query-unsigned", "allowUnsignedQuery", isTrue, "takes a query that no signature covers"],
  [
    "nonce-missing",
    "requiredParameters",
    (required) => !textsOf(required).includes("nonce"),
    "requires no nonce: within its window, a request can be sent again",
  ],
  [
    "key-none-valid",
    "keys",
    (keys, { now }) =>
      keysOf(keys).length > 0 &&
      !keysOf(keys).some((key) => key.notBefore <= now && now <= key.notAfter && now < key.revokedAt),
    "has no key that is valid now",
  ],
  [
    "key-duplicate",
    "keys",
    (keys) => duplicatesOf(keys).length > 0,
    (keys) => `has the same key as ${duplicatesOf(keys).join(", and as ")}`,
  ],
  [
    "key-for-tests",
    "keys",
    (keys, { isProduction }) => isProduction && testKeysOf(keys).length > 0,
    (keys) => `takes signatures of the key ${testKeysOf(keys).join(" and ")}`,
  ],
  ["credentials-short", "password", isShort, "has a password of less than 12 characters"],
  ["credentials-short", "credentials", isShort, "has a password of less than 12 characters"],
  ["credentials-short", "secret", isShort, "has a secret of less than 16 bytes"],
  ["credentials-short", "secrets", isShort, "has a secret of less than 16 bytes"],
  ["beneficiary-unchecked", "findBusiness", isFalse, "has no findBusiness: it pays to any valid IBAN"],
  ["webhook-http", "dangerouslyAllowHttp", isTrue, "takes webhooks over plain http"],
  ["keys-not-listable", "store", (store) => memberOf(store, "lists") !== true, "has a store without list()"],
  [
    "retention-short",
    "store",
    (store) => Number(memberOf(store, "retentionMs") ?? dayMs) < dayMs,
    (store) =>
      `has a store that forgets a paid key after ${Number(memberOf(store, "retentionMs")) / 3_600_000} h`,
  ],
];

type KeyRow = readonly [id: FindingId, when: (key: Key, now: number) => boolean, says: (key: Key) => string];

const soonSeconds = 14 * 86_400;

/** Of a configured key the first that is so; nothing is known of keys that are looked up. */
export const keyRows: readonly KeyRow[] = [
  [
    "key-revoked",
    ({ revokedAt }, now) => revokedAt <= now,
    ({ revokedAt }) => `was revoked on ${dayOf(revokedAt)}`,
  ],
  ["key-expired", ({ notAfter }, now) => notAfter < now, ({ notAfter }) => `ended on ${dayOf(notAfter)}`],
  [
    "key-not-yet-valid",
    ({ notBefore }, now) => notBefore > now,
    ({ notBefore }) => `is valid from ${dayOf(notBefore)} on`,
  ],
  ["key-ends-soon", (key, now) => endOf(key) < now + soonSeconds, (key) => `ends on ${dayOf(endOf(key))}`],
];

// What also covers a component: the target URI holds the path, RFC 9421 section 2.2.2.
const instead: ReadonlyMap<string, readonly string[]> = new Map([
  ["@path", ["@path", "@target-uri", "@request-target"]],
]);

function missingComponents(required: BuiltFact): readonly string[] {
  const bare = new Set(textsOf(required).map((name) => /^"?([^";]+)/.exec(name)?.[1] ?? name));
  return defaultComponents.filter((name) => !(instead.get(name) ?? [name]).some((one) => bare.has(one)));
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

/** The configured keys of a fact. */
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

function endOf({ notAfter, revokedAt }: Key): number {
  return Math.min(notAfter, revokedAt);
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

function isFacts(fact: BuiltFact): fact is Built["facts"] {
  return typeof fact === "object" && fact !== null && !Array.isArray(fact);
}

function memberOf(fact: BuiltFact, name: string): BuiltFact | undefined {
  return isFacts(fact) ? fact[name] : undefined;
}

function textsOf(fact: BuiltFact): readonly string[] {
  return Array.isArray(fact) ? fact.filter((text): text is string => typeof text === "string") : [];
}

function dayOf(unixSeconds: number): string {
  return new Date(unixSeconds * 1000).toISOString().slice(0, 10);
}
