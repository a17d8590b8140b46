import type { BuiltFact, BuiltFacts } from "@countersign/core";
import { defaultComponents } from "@countersign/http-message-signatures";
import { printable } from "../printable.ts";
import type { AppFacts, AppFault } from "./app-facts.ts";
import { findingsOf, type Finding, type Found } from "./findings.ts";
import { keyFindings } from "./key-findings.ts";
import { orderFindings } from "./order-findings.ts";

/** What findings depend on beside the app. */
export interface Surroundings {
  /** Unix seconds. */
  readonly now: number;
  readonly isProduction: boolean;
}

/** What is wrong with an app. */
export function appFindings(
  subject: string,
  facts: AppFacts,
  surroundings: Surroundings,
): readonly Finding[] {
  const found = findingsOf(subject);
  const fault = facts.fault === undefined ? [] : [faultFinding(found, facts.fault)];
  return [
    ...fault,
    ...moduleFindings(found, facts),
    ...orderFindings(found, facts),
    ...facts.built.flatMap(
      ({ built, factory, facts: own }) =>
        byBuilt.get(built)?.({ found, where: placeOf(built, factory), surroundings }, own) ?? [],
    ),
  ];
}

function placeOf(built: string, factory: string): string {
  return printable(built === factory ? built : `${built} of ${factory}`);
}

const secretOptions = /(?:secret|password|username|credentials|basicAuth|hmac)/i;
const keyOptions = /(?:^|\.)keys\b/;

function faultFinding(found: Found, { message, factory, option }: AppFault): Finding {
  const text = printable(message.replaceAll(/\s+/g, " ").trim()) || "it failed without a message";
  if (factory === undefined) return found("app-failed", text);
  if (option !== undefined && keyOptions.test(option)) return found("key-refused", text);
  const isEmpty = /empty|undefined|exactly one of|unset/.test(message);
  if (isEmpty && secretOptions.test(option ?? message)) return found("credentials-empty", text);
  return found("options-refused", text);
}

function moduleFindings(found: Found, { kind, built, listens, fault }: AppFacts): readonly Finding[] {
  if (fault !== undefined) return [];
  const hasChecks = built.some(({ built: name }) => !name.startsWith("memory"));
  const unknown =
    "the module exports no Express or Fastify app; what it has built is examined, and not its order";
  return [
    ...(kind === "unknown" ? [found("app-unknown", unknown, hasChecks ? "info" : undefined)] : []),
    ...(hasChecks ? [] : [found("no-guards", "loading the app built no check of countersign")]),
    ...(listens ? [found("app-listens", "the module listens when it is loaded; it was not let to")] : []),
  ];
}

interface Context {
  readonly found: Found;
  readonly where: string;
  readonly surroundings: Surroundings;
}

type Examine = (context: Context, facts: BuiltFacts) => readonly Finding[];

const byBuilt: ReadonlyMap<string, Examine> = new Map<string, Examine>([
  ["httpSignatureVerify", examineSignature],
  ["memoryIdempotencyStore", examineMemory],
  ["memoryNonceStore", examineMemory],
  ["webhookBasicAuth", examineShort("a password of less than 12 characters")],
  ["webhookHmac", examineShort("a secret of less than 16 bytes")],
  ["ipAllowlist", examineAddresses],
  ["idempotencyGuard", examineKeys],
  ["payoutEndpoint", examinePayout],
  ["payoutPlugin", examineConnection("clientAddress", "has the address of that proxy, and is 401")],
  ["webhookPlugin", examineConnection("scheme", "that came by TLS is taken for http")],
  ["webhookEndpoint", examineWebhook],
]);

function examineSignature(context: Context, facts: BuiltFacts): readonly Finding[] {
  const { found, where } = context;
  const required = textsOf(facts["requiredComponents"]);
  const missing = missingComponents(required);
  const parameters = textsOf(facts["requiredParameters"]);
  const list = missing.join(", ");
  return [
    ...(missing.length === 0
      ? []
      : [found("components-missing", `${where} takes signatures that do not cover ${list}`)]),
    ...(facts["allowUnsignedBody"] === true
      ? [found("body-unsigned", `${where} takes a body that no signature covers`)]
      : []),
    ...(facts["allowUnsignedQuery"] === true
      ? [found("query-unsigned", `${where} takes a query that no signature covers`)]
      : []),
    ...(parameters.includes("nonce")
      ? []
      : [
          found(
            "nonce-missing",
            `${where} requires no nonce: within its window, a request can be sent again`,
          ),
        ]),
    ...keyFindings(context, facts["keys"]),
  ];
}

// What also covers a component: the target URI holds the path, RFC 9421 section 2.2.2.
const instead: ReadonlyMap<string, readonly string[]> = new Map([
  ["@path", ["@path", "@target-uri", "@request-target"]],
]);

function missingComponents(required: readonly string[]): readonly string[] {
  const bare = new Set(required.map((name) => /^"?([^";]+)/.exec(name)?.[1] ?? name));
  return defaultComponents.filter((name) => !(instead.get(name) ?? [name]).some((one) => bare.has(one)));
}

function examineMemory({ found, where, surroundings }: Context): readonly Finding[] {
  const message = `${where} forgets everything with its process, and no other process knows it`;
  return [found("memory-store", message, surroundings.isProduction ? "error" : "info")];
}

function examineShort(what: string): Examine {
  return ({ found, where }, { short }) =>
    short === true ? [found("credentials-short", `${where} has ${what}`)] : [];
}

function examineConnection(option: "clientAddress" | "scheme", what: string): Examine {
  return ({ found, where }, facts) =>
    facts[option] === false
      ? [found("connection-unset", `${where} has no ${option}: behind a proxy, every request ${what}`)]
      : [];
}

function examineAddresses({ found, where }: Context, facts: BuiltFacts): readonly Finding[] {
  if (facts["dangerouslyAllowAnyAddress"] !== true) return [];
  return [found("address-any", `${where} may admit every address`)];
}

const dayMs = 86_400_000;

function examineKeys({ found, where }: Context, { lists, retentionMs }: BuiltFacts): readonly Finding[] {
  const isShort = typeof retentionMs === "number" && retentionMs < dayMs;
  return [
    ...(lists === true ? [] : [found("keys-not-listable", `the store of ${where} has no list()`)]),
    ...(isShort
      ? [
          found(
            "retention-short",
            `the store of ${where} forgets a paid key after ${retentionMs / 3_600_000} h`,
          ),
        ]
      : []),
  ];
}

function examinePayout({ found, where }: Context, { findBusiness }: BuiltFacts): readonly Finding[] {
  if (findBusiness === true) return [];
  return [found("beneficiary-unchecked", `${where} has no findBusiness: it pays to any valid IBAN`)];
}

function examineWebhook({ found, where }: Context, { allowsHttp }: BuiltFacts): readonly Finding[] {
  if (allowsHttp !== true) return [];
  return [found("webhook-http", `${where} takes webhooks over plain http`)];
}

function textsOf(fact: BuiltFact | undefined): readonly string[] {
  return Array.isArray(fact) ? fact.filter((text): text is string => typeof text === "string") : [];
}
