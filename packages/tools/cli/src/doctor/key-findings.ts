import type { BuiltFact, BuiltFacts } from "@countersign/core";
import { shownKey } from "../operator/key-text.ts";
import type { Finding, Found } from "./findings.ts";

interface Context {
  readonly found: Found;
  readonly where: string;
  readonly surroundings: { readonly now: number; readonly isProduction: boolean };
}

interface Key {
  readonly keyid: string;
  /** Undefined of a secret. */
  readonly thumbprint: string | undefined;
  /** Unix seconds, like the next two. */
  readonly notBefore: number | undefined;
  readonly notAfter: number | undefined;
  readonly revokedAt: number | undefined;
}

const soonSeconds = 14 * 86_400;

/** What is wrong with the configured keys of signers; nothing is known of keys that are looked up. */
export function keyFindings(
  { found, where, surroundings }: Context,
  fact: BuiltFact | undefined,
): readonly Finding[] {
  const keys = keysOf(fact);
  if (keys.length === 0) return [];
  const { now, isProduction } = surroundings;
  const findings = keys.flatMap((key) => timeFindings({ found, where, now }, key));
  const isUsable = (key: Key): boolean =>
    !((key.revokedAt ?? Infinity) <= now || (key.notAfter ?? Infinity) < now || (key.notBefore ?? 0) > now);
  if (!keys.some(isUsable))
    findings.push(found("key-none-valid", `none of the keys of ${where} is valid now`));
  for (const [one, other] of duplicatesOf(keys)) {
    findings.push(
      found("key-duplicate", `${where} has the same key as ${shownKey(one)} and ${shownKey(other)}`),
    );
  }
  const forTests = isProduction ? keys.filter(({ keyid }) => /^test(?:$|[-_.])/i.test(keyid)) : [];
  findings.push(
    ...forTests.map(({ keyid }) =>
      found("key-for-tests", `${where} takes signatures of the key ${shownKey(keyid)}`),
    ),
  );
  return findings;
}

function timeFindings(
  { found, where, now }: { readonly found: Found; readonly where: string; readonly now: number },
  { keyid, notBefore, notAfter, revokedAt }: Key,
): Finding[] {
  const key = `key ${shownKey(keyid)} of ${where}`;
  if (revokedAt !== undefined && revokedAt <= now) {
    return [found("key-revoked", `${key} was revoked on ${dayOf(revokedAt)}`)];
  }
  if (notAfter !== undefined && notAfter < now)
    return [found("key-expired", `${key} ended on ${dayOf(notAfter)}`)];
  if (notBefore !== undefined && notBefore > now) {
    return [found("key-not-yet-valid", `${key} is valid from ${dayOf(notBefore)} on`)];
  }
  const ends = Math.min(notAfter ?? Infinity, revokedAt ?? Infinity);
  return ends < now + soonSeconds ? [found("key-ends-soon", `${key} ends on ${dayOf(ends)}`)] : [];
}

function duplicatesOf(keys: readonly Key[]): [one: string, other: string][] {
  return keys.flatMap((key, at): [string, string][] => {
    if (key.thumbprint === undefined) return [];
    const first = keys.findIndex(({ thumbprint }) => thumbprint === key.thumbprint);
    const same = keys[first];
    return same === undefined || first === at ? [] : [[same.keyid, key.keyid]];
  });
}

function keysOf(fact: BuiltFact | undefined): readonly Key[] {
  if (!Array.isArray(fact)) return [];
  return fact.filter(isFacts).map((facts) => ({
    keyid: textOf(facts["keyid"]),
    thumbprint: typeof facts["thumbprint"] === "string" ? facts["thumbprint"] : undefined,
    notBefore: secondsOf(facts["notBefore"]),
    notAfter: secondsOf(facts["notAfter"]),
    revokedAt: secondsOf(facts["revokedAt"]),
  }));
}

function isFacts(fact: BuiltFact): fact is BuiltFacts {
  return typeof fact === "object" && fact !== null && !Array.isArray(fact);
}

function textOf(fact: BuiltFact | undefined): string {
  return typeof fact === "string" ? fact : "";
}

function secondsOf(fact: BuiltFact | undefined): number | undefined {
  return typeof fact === "number" ? fact : undefined;
}

function dayOf(unixSeconds: number): string {
  return new Date(unixSeconds * 1000).toISOString().slice(0, 10);
}
