import { readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import type { OptionRule } from "@countersign/core/door";
import { describe, expect, test } from "@jest/globals";
import { answerTable as answerDigests } from "../../packages/checks/content-digest/dist/answer-digests.js";
import {
  policyTable as digestPolicy,
  table as contentDigest,
} from "../../packages/checks/content-digest/dist/options.js";
import { hmacTable as explainHmac } from "../../packages/tools/explain/dist/explain-hmac.js";
import { table as explainSignature } from "../../packages/tools/explain/dist/options.js";
import { explainerTable } from "../../packages/tools/explain/dist/refusal-explainer.js";
import { table as gracefulClose } from "../../packages/doors/express/dist/graceful-close.js";
import { table as guardErrors } from "../../packages/doors/express/dist/guard-errors.js";
import { table as signResponse } from "../../packages/checks/http-signature-verify/dist/sign/options.js";
import { table as cachedKeys } from "../../packages/checks/http-signature-verify/dist/cached-keys.js";
import { table as directoryKeys } from "../../packages/checks/http-signature-verify/dist/directory-keys.js";
import { table as jwksKeys } from "../../packages/checks/http-signature-verify/dist/jwks-keys.js";
import { table as keyUse } from "../../packages/checks/http-signature-verify/dist/key-use.js";
import { table as memoryNonceStore } from "../../packages/checks/http-signature-verify/dist/nonce-store.js";
import { table as httpSignatureVerify } from "../../packages/checks/http-signature-verify/dist/options.js";
import { headerTable as idempotencyKeyHeader } from "../../packages/checks/idempotency-guard/dist/key-header.js";
import {
  table as idempotencyGuard,
  transactionGuardTable,
  transactionTable as guardInTransaction,
} from "../../packages/checks/idempotency-guard/dist/options.js";
import { replayTable } from "../../packages/checks/idempotency-guard/dist/replay.js";
import { answersTable as memoryAnswerStore } from "../../packages/kernel/idempotency/dist/answers.js";
import { table as idempotencyKeys } from "../../packages/kernel/idempotency/dist/key-options.js";
import { table as memoryIdempotencyStore } from "../../packages/kernel/idempotency/dist/memory-store.js";
import { rulesTable as compileAllowlist } from "../../packages/checks/ip-allowlist/dist/allowlist.js";
import { liveTable as liveAllowlist } from "../../packages/checks/ip-allowlist/dist/live-allowlist.js";
import { table as ipAllowlist } from "../../packages/checks/ip-allowlist/dist/options.js";
import { consoleTable as consoleLog } from "../../packages/observe/observe/dist/log/console-log.js";
import { table as inspector } from "../../packages/tools/inspector/dist/options.js";
import { table as opentelemetry } from "../../packages/observe/observe/dist/opentelemetry/opentelemetry.js";
import { table as createOutcomes } from "../../packages/endpoints/outcomes/dist/options.js";
import { table as createTaskQueue } from "../../packages/kernel/work/dist/task-queue.js";
import { answersTable as payoutAnswers } from "../../packages/endpoints/payout/dist/middleware.js";
import {
  table as payoutSteps,
  transactionTable as payoutInTransaction,
} from "../../packages/endpoints/payout/dist/options.js";
import { payoutStoreKey } from "../../packages/endpoints/payout/dist/schema.js";
import { table as prometheus } from "../../packages/observe/observe/dist/prometheus/prometheus.js";
import { jsonTable as jsonBody, table as rawBody } from "../../packages/checks/raw-body/dist/options.js";
import { table as createServiceClient } from "../../packages/endpoints/service-client/dist/options.js";
import { createTable as createWebhookEndpoint } from "../../packages/endpoints/service-client/dist/service-client.js";
import { table as createMysqlStores } from "../../packages/stores/store-mysql/dist/options.js";
import { table as createPostgresStores } from "../../packages/stores/store-postgres/dist/options.js";
import { tablesTable as postgresTables } from "../../packages/stores/store-postgres/dist/table-names.js";
import { table as withPostgresTransaction } from "../../packages/stores/store-postgres/dist/transaction.js";
import { table as createRedisStores } from "../../packages/stores/store-redis/dist/options.js";
import { table as createSqliteStores } from "../../packages/stores/store-sqlite/dist/options.js";
import { table as webhookBasicAuth } from "../../packages/checks/webhook-basic-auth/dist/options.js";
import {
  fieldTable as payloadField,
  table as webhookHmac,
} from "../../packages/checks/webhook-hmac/dist/options.js";
import { signTable as signPayloadHeaders } from "../../packages/checks/webhook-hmac/dist/payload-headers.js";
import { schemeTable } from "../../packages/checks/webhook-hmac/dist/scheme.js";
import { table as generateEndpoint } from "../../packages/endpoints/webhooks/dist/endpoint/generate-endpoint.js";
import { answersTable as webhookAnswers } from "../../packages/endpoints/webhooks/dist/endpoint/middleware.js";
import {
  httpsTable as httpsOnly,
  table as webhookSteps,
} from "../../packages/endpoints/webhooks/dist/endpoint/webhook-endpoint-options.js";
import { table as createInbox } from "../../packages/endpoints/webhooks/dist/inbox/inbox-options.js";
import {
  table as createWebhookHandler,
  transactionHandlerTable,
} from "../../packages/endpoints/webhooks/dist/events/webhook-handler-options.js";
import { payoutTable as payoutPlugin } from "../../packages/doors/fastify/dist/payout-plugin.js";
import { webhookTable as webhookPlugin } from "../../packages/doors/fastify/dist/plugins.js";
import {
  checkedTable as checkedRoute,
  idempotentTable as idempotentRoute,
  webhookTable as webhookRoute,
} from "../../packages/doors/fetch/dist/routes.js";
import { workspacePackages } from "../../scripts/workspace.mjs";
import { packagePage } from "./package-pages.ts";
import { optionsOfCall, optionTables, plain } from "./written-options.ts";

const keysPage = "docs/keys.md";
const idempotencyPage = "site/pages/guide/idempotency-key.md";
const storesPage = "site/pages/reference/stores.md";

type Rules = Readonly<Record<string, OptionRule<unknown>>>;

/** The rules of another form that the first form does not share. */
function further(rules: Rules, first: Rules): Rules {
  return Object.fromEntries(Object.entries(rules).filter(([option, rule]) => first[option] !== rule));
}

const { retentionMs, taskRetentionMs, pruneIntervalMs, lockTimeoutMs, now } = createPostgresStores;
const ofAllStores: Rules = { retentionMs, taskRetentionMs, pruneIntervalMs, lockTimeoutMs, now };

/** The rules of a store that the page of all stores does not tell with the same default. */
function ownOf(rules: Rules): Rules {
  const told = (option: string, { byDefault }: OptionRule<unknown>): boolean =>
    ofAllStores[option] !== undefined && plain(ofAllStores[option].byDefault) === plain(byDefault);
  return Object.fromEntries(Object.entries(rules).filter(([option, rule]) => !told(option, rule)));
}

// The endpoint gives its own scope and fingerprint.
const payoutGuard: Rules = {
  ...transactionGuardTable,
  scope: { ...transactionGuardTable.scope, byDefault: JSON.stringify(payoutStoreKey("").slice(0, -1)) },
  fingerprint: idempotencyGuard.fingerprint,
};

/** The package in whose page, or the other page in which, options are told, where there: the position of the table or the call, and their rules. */
const documented: readonly [name: string, place: number | string, rules: Rules][] = [
  ["content-digest", 0, contentDigest],
  ["content-digest", 1, answerDigests],
  ["content-digest", "verifyContentDigest", digestPolicy],
  ["explain", 0, { ...explainSignature, ...explainerTable }],
  ["explain", "explainHmac", explainHmac],
  ["express", 0, guardErrors],
  ["express", 1, gracefulClose],
  ["http-signature-verify", 0, httpSignatureVerify],
  ["http-signature-verify", 1, signResponse],
  ["http-signature-verify", "memoryNonceStore", memoryNonceStore],
  ["fastify", 0, { ...payoutPlugin, ...webhookPlugin }],
  ["fetch", 0, { ...idempotentRoute, ...checkedRoute, ...webhookRoute }],
  ["idempotency", 0, idempotencyKeys],
  ["idempotency", "memoryIdempotencyStore", memoryIdempotencyStore],
  ["idempotency", "memoryAnswerStore", memoryAnswerStore],
  ["idempotency-guard", 0, idempotencyGuard],
  ["idempotency-guard", 1, further(guardInTransaction, idempotencyGuard)],
  [idempotencyPage, 0, idempotencyKeyHeader],
  [idempotencyPage, 1, replayTable],
  ["inspector", 0, inspector],
  ["ip-allowlist", 0, ipAllowlist],
  ["ip-allowlist", 1, liveAllowlist],
  ["ip-allowlist", "compileAllowlist", compileAllowlist],
  ["observe", 0, consoleLog],
  ["observe", 1, prometheus],
  ["observe", 2, opentelemetry],
  ["outcomes", 0, createOutcomes],
  ["payout", 0, { ...payoutSteps, ...payoutAnswers }],
  ["payout", 1, further(payoutInTransaction, payoutSteps)],
  ["payout", 2, payoutGuard],
  ["raw-body", 0, rawBody],
  ["raw-body", 1, jsonBody],
  ["service-client", 0, createServiceClient],
  ["service-client", "client.createWebhookEndpoint", createWebhookEndpoint],
  ["store-mysql", 0, ownOf(createMysqlStores)],
  ["store-postgres", 0, ownOf(createPostgresStores)],
  ["store-postgres", "migratePostgres", postgresTables],
  ["store-postgres", "postgresMigration", postgresTables],
  ["store-postgres", "withPostgresTransaction", withPostgresTransaction],
  ["store-redis", 0, ownOf(createRedisStores)],
  ["store-sqlite", 0, ownOf(createSqliteStores)],
  [storesPage, 0, ofAllStores],
  ["webhook-basic-auth", 0, webhookBasicAuth],
  ["webhook-hmac", 0, schemeTable],
  ["webhook-hmac", 1, webhookHmac],
  ["webhook-hmac", "signPayloadHeaders", signPayloadHeaders],
  ["webhook-hmac", "verifyPayload", payloadField],
  ["webhooks", 0, { ...webhookSteps, ...webhookAnswers }],
  ["webhooks", 1, createWebhookHandler],
  ["webhooks", 2, further(transactionHandlerTable, createWebhookHandler)],
  ["webhooks", 3, createInbox],
  ["webhooks", "generateEndpoint", generateEndpoint],
  ["webhooks", "httpsOnly", httpsOnly],
  ["work", 0, createTaskQueue],
  [keysPage, 0, jwksKeys],
  [keysPage, 1, directoryKeys],
  [keysPage, 2, cachedKeys],
  [keysPage, "keyUse", keyUse],
];

// Of the engine, of tests of stores, and of the sandbox: no table of ours reads them. fetch has one of what a server tells beside them.
const withoutRules = new Set(["http-message-signatures", "sandbox", "store-contract", "fetch"]);

const root = resolve(dirname(fileURLToPath(import.meta.url)), "../..");
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

test.each([
  ...[...workspacePackages.keys()].filter((name) => !withoutRules.has(name)),
  keysPage,
  idempotencyPage,
  storesPage,
])("each table of options in the page of %s is compared", (name) => {
  const places = documented.flatMap(([owner, place]) =>
    owner === name && typeof place === "number" ? [place] : [],
  );
  expect(places).toEqual(optionTables(pageOf(name)).map((_table, index) => index));
});

// Each of these is a decision: whoever listens on the channel sees it.
test("countersign:built shows of all options these, and no other", () => {
  const shown = documented.flatMap(([name, place, rules]) => {
    const options = Object.keys(rules).filter((option) => rules[option]?.show !== undefined);
    return options.length === 0 ? [] : [[name, place, options.join(" ")]];
  });
  expect(shown).toEqual([
    [
      "http-signature-verify",
      0,
      "keys requiredComponents requiredParameters allowUnsignedQuery allowUnsignedBody",
    ],
    ["http-signature-verify", "memoryNonceStore", "allowInProduction"],
    ["fastify", 0, "clientAddress scheme"],
    ["idempotency", "memoryIdempotencyStore", "allowInProduction"],
    ["idempotency-guard", 0, "store"],
    ["ip-allowlist", 0, "allow dangerouslyAllowAnyAddress"],
    ["payout", 0, "findBusiness"],
    ["webhook-basic-auth", 0, "password credentials"],
    ["webhook-hmac", 1, "secret secrets"],
    ["webhooks", "httpsOnly", "dangerouslyAllowHttp"],
  ]);
});

function isLiteral(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
