import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import type { OptionRule } from "@countersign/core";
import { describe, expect, test } from "@jest/globals";
import { answerTable as answerDigests } from "../../packages/content-digest/dist/answer-digests.js";
import {
  policyTable as digestPolicy,
  table as contentDigest,
} from "../../packages/content-digest/dist/options.js";
import { hmacTable as explainHmac } from "../../packages/explain/dist/explain-hmac.js";
import { table as explainSignature } from "../../packages/explain/dist/options.js";
import { explainerTable } from "../../packages/explain/dist/signature-explainer.js";
import { table as gracefulClose } from "../../packages/express/dist/graceful-close.js";
import { table as guardErrors } from "../../packages/express/dist/guard-errors.js";
import { table as signResponse } from "../../packages/http-signature-sign/dist/options.js";
import { table as cachedKeys } from "../../packages/http-signature-verify/dist/cached-keys.js";
import { table as directoryKeys } from "../../packages/http-signature-verify/dist/directory-keys.js";
import { table as jwksKeys } from "../../packages/http-signature-verify/dist/jwks-keys.js";
import { table as keyUse } from "../../packages/http-signature-verify/dist/key-use.js";
import { table as memoryNonceStore } from "../../packages/http-signature-verify/dist/nonce-store.js";
import { table as httpSignatureVerify } from "../../packages/http-signature-verify/dist/options.js";
import { headerTable as idempotencyKeyHeader } from "../../packages/idempotency-guard/dist/key-header.js";
import { table as idempotencyGuard } from "../../packages/idempotency-guard/dist/options.js";
import { replayTable } from "../../packages/idempotency-guard/dist/replay.js";
import { answersTable as memoryAnswerStore } from "../../packages/idempotency/dist/answers.js";
import { table as idempotencyKeys } from "../../packages/idempotency/dist/key-options.js";
import { table as memoryIdempotencyStore } from "../../packages/idempotency/dist/memory-store.js";
import { rulesTable as compileAllowlist } from "../../packages/ip-allowlist/dist/allowlist.js";
import { liveTable as liveAllowlist } from "../../packages/ip-allowlist/dist/live-allowlist.js";
import { table as ipAllowlist } from "../../packages/ip-allowlist/dist/options.js";
import { consoleTable as consoleLog } from "../../packages/log/dist/console-log.js";
import { table as inspector } from "../../packages/inspector/dist/options.js";
import { table as opentelemetry } from "../../packages/opentelemetry/dist/opentelemetry.js";
import { answersTable as payoutAnswers } from "../../packages/payout/dist/middleware.js";
import { table as payoutSteps } from "../../packages/payout/dist/options.js";
import { table as prometheus } from "../../packages/prometheus/dist/prometheus.js";
import { jsonTable as jsonBody, table as rawBody } from "../../packages/raw-body/dist/options.js";
import { table as createServiceClient } from "../../packages/service-client/dist/options.js";
import { createTable as createWebhookEndpoint } from "../../packages/service-client/dist/service-client.js";
import { table as createPostgresStores } from "../../packages/store-postgres/dist/options.js";
import { tablesTable as postgresTables } from "../../packages/store-postgres/dist/table-names.js";
import { table as withPostgresTransaction } from "../../packages/store-postgres/dist/transaction.js";
import { table as createRedisStores } from "../../packages/store-redis/dist/options.js";
import { table as createSqliteStores } from "../../packages/store-sqlite/dist/options.js";
import { table as webhookBasicAuth } from "../../packages/webhook-basic-auth/dist/options.js";
import {
  fieldTable as payloadField,
  table as webhookHmac,
} from "../../packages/webhook-hmac/dist/options.js";
import { signTable as signPayloadHeaders } from "../../packages/webhook-hmac/dist/payload-headers.js";
import { table as signPayload } from "../../packages/webhook-hmac/dist/payload-signature.js";
import { schemeTable } from "../../packages/webhook-hmac/dist/scheme.js";
import { table as generateEndpoint } from "../../packages/webhooks/dist/endpoint/generate-endpoint.js";
import { answersTable as webhookAnswers } from "../../packages/webhooks/dist/endpoint/middleware.js";
import {
  httpsTable as httpsOnly,
  table as webhookSteps,
} from "../../packages/webhooks/dist/endpoint/webhook-endpoint-options.js";
import {
  memoryTable as memoryLatestTimestamps,
  table as latestOnly,
} from "../../packages/webhooks/dist/events/latest-only.js";
import { table as createWebhookHandler } from "../../packages/webhooks/dist/events/webhook-handler-options.js";
import {
  payoutTable as payoutPlugin,
  webhookTable as webhookPlugin,
} from "../../packages/fastify/dist/plugins.js";
import {
  checkedTable as checkedRoute,
  idempotentTable as idempotentRoute,
  webhookTable as webhookRoute,
} from "../../packages/fetch/dist/routes.js";
import { packagePage } from "./package-pages.ts";
import { optionsOfCall, optionTables, plain } from "./written-options.ts";

const keysPage = "docs/keys.md";
const idempotencyPage = "docs/idempotency-key.md";

type Rules = Readonly<Record<string, OptionRule<unknown>>>;

/** The package in whose page, or the other page in which, options are told, where there: the position of the table or the call, and their rules. */
const documented: readonly [name: string, place: number | string, rules: Rules][] = [
  ["content-digest", 0, contentDigest],
  ["content-digest", 1, answerDigests],
  ["content-digest", "verifyContentDigest", digestPolicy],
  ["explain", 0, { ...explainSignature, ...explainerTable }],
  ["explain", "explainHmac", explainHmac],
  ["express", 0, guardErrors],
  ["express", 1, gracefulClose],
  ["http-signature-sign", 0, signResponse],
  ["http-signature-verify", 0, httpSignatureVerify],
  ["http-signature-verify", "memoryNonceStore", memoryNonceStore],
  ["fastify", 0, { ...payoutPlugin, ...webhookPlugin }],
  ["fetch", 0, { ...idempotentRoute, ...checkedRoute, ...webhookRoute }],
  ["idempotency", 0, idempotencyKeys],
  ["idempotency", "memoryIdempotencyStore", memoryIdempotencyStore],
  ["idempotency", "memoryAnswerStore", memoryAnswerStore],
  ["idempotency-guard", 0, idempotencyGuard],
  [idempotencyPage, 0, idempotencyKeyHeader],
  [idempotencyPage, 1, replayTable],
  ["inspector", 0, inspector],
  ["ip-allowlist", 0, ipAllowlist],
  ["ip-allowlist", 1, liveAllowlist],
  ["ip-allowlist", "compileAllowlist", compileAllowlist],
  ["log", 0, consoleLog],
  ["opentelemetry", 0, opentelemetry],
  ["payout", 0, { ...payoutSteps, ...payoutAnswers }],
  ["prometheus", 0, prometheus],
  ["raw-body", 0, rawBody],
  ["raw-body", 1, jsonBody],
  ["service-client", 0, createServiceClient],
  ["service-client", "client.createWebhookEndpoint", createWebhookEndpoint],
  ["store-postgres", 0, createPostgresStores],
  ["store-postgres", "migratePostgres", postgresTables],
  ["store-postgres", "postgresMigration", postgresTables],
  ["store-postgres", "withPostgresTransaction", withPostgresTransaction],
  ["store-redis", 0, createRedisStores],
  ["store-sqlite", 0, createSqliteStores],
  ["webhook-basic-auth", 0, webhookBasicAuth],
  ["webhook-hmac", 0, schemeTable],
  ["webhook-hmac", 1, webhookHmac],
  ["webhook-hmac", "signPayloadHeaders", signPayloadHeaders],
  ["webhook-hmac", "signPayload", signPayload],
  ["webhook-hmac", "verifyPayload", payloadField],
  ["webhooks", 0, { ...webhookSteps, ...webhookAnswers }],
  ["webhooks", 1, createWebhookHandler],
  ["webhooks", "latestOnly", latestOnly],
  ["webhooks", "memoryLatestTimestamps", memoryLatestTimestamps],
  ["webhooks", "generateEndpoint", generateEndpoint],
  ["webhooks", "httpsOnly", httpsOnly],
  [keysPage, 0, jwksKeys],
  [keysPage, 1, directoryKeys],
  [keysPage, 2, cachedKeys],
  [keysPage, "keyUse", keyUse],
];

// Of the engine, of tests of stores, and of the sandbox: no table of ours reads them. fetch has one of what a server tells beside them.
const withoutRules = new Set(["http-message-signatures", "sandbox", "store-contract", "fetch"]);

const root = resolve(dirname(fileURLToPath(import.meta.url)), "../..");
const packages = join(root, "packages");
const pageOf = (name: string): string =>
  name.endsWith(".md") ? readFileSync(join(root, name), "utf8") : packagePage(name);

describe.each(documented)("the page of %s tells the options of %s", (name, place, rules) => {
  const byDefault = Object.entries(rules).map(([option, rule]) => [option, plain(rule.byDefault)] as const);

  if (typeof place === "number") {
    test("in a table, each with the default that the code has", () => {
      expect(optionTables(pageOf(name))[place]).toEqual(Object.fromEntries(byDefault));
    });
  } else {
    test("in the call, each with the default that the code has, unless words say it better", () => {
      const told = byDefault.map(([option, text]) => [option, isLiteral(text) ? text : undefined]);
      expect(optionsOfCall(pageOf(name), place)).toStrictEqual(Object.fromEntries(told));
    });
  }
});

test.each([...readdirSync(packages).filter((name) => !withoutRules.has(name)), keysPage, idempotencyPage])(
  "each table of options in the page of %s is compared",
  (name) => {
    const places = documented.flatMap(([owner, place]) =>
      owner === name && typeof place === "number" ? [place] : [],
    );
    expect(places).toEqual(optionTables(pageOf(name)).map((_table, index) => index));
  },
);

function isLiteral(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
