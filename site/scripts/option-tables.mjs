// The tables of options on pages: the rules by which a factory reads them, and the types whose doc comments say what each means.
import { answerTable as answerDigests } from "../../packages/checks/content-digest/dist/answer-digests.js";
import { table as contentDigest } from "../../packages/checks/content-digest/dist/options.js";
import { table as explainSignature } from "../../packages/tools/cli/dist/explain/options.js";
import { explainerTable } from "../../packages/tools/cli/dist/explain/refusal-explainer.js";
import { table as gracefulClose } from "../../packages/adapters/express/dist/graceful-close.js";
import { table as guardErrors } from "../../packages/adapters/express/dist/guard-errors.js";
import { table as signResponse } from "../../packages/checks/http-signature-verify/dist/sign/options.js";
import { table as cachedKeys } from "../../packages/checks/http-signature-verify/dist/cached-keys.js";
import { table as directoryKeys } from "../../packages/checks/http-signature-verify/dist/directory-keys.js";
import { table as jwksKeys } from "../../packages/checks/http-signature-verify/dist/jwks-keys.js";
import { table as httpSignatureVerify } from "../../packages/checks/http-signature-verify/dist/options.js";
import { headerTable as idempotencyKeyHeader } from "../../packages/checks/idempotency-guard/dist/key-header.js";
import {
  table as idempotencyGuard,
  transactionGuardTable,
  transactionTable as guardInTransaction,
} from "../../packages/checks/idempotency-guard/dist/options.js";
import { replayTable } from "../../packages/checks/idempotency-guard/dist/replay.js";
import { table as idempotencyKeys } from "../../packages/kernel/idempotency/dist/key-options.js";
import { liveTable as liveAllowlist } from "../../packages/checks/ip-allowlist/dist/live-allowlist.js";
import { table as ipAllowlist } from "../../packages/checks/ip-allowlist/dist/options.js";
import { consoleTable as consoleLog } from "../../packages/observe/observe/dist/log/console-log.js";
import { table as inspector } from "../../packages/tools/devtools/dist/inspector/options.js";
import { table as opentelemetry } from "../../packages/observe/observe/dist/opentelemetry/opentelemetry.js";
import { answersTable as payoutAnswers } from "../../packages/endpoints/countersign/dist/payout/middleware.js";
import {
  table as payoutSteps,
  transactionTable as payoutInTransaction,
} from "../../packages/endpoints/countersign/dist/payout/options.js";
import { payoutStoreKey } from "../../packages/endpoints/countersign/dist/payout/schema.js";
import { table as prometheus } from "../../packages/observe/observe/dist/prometheus/prometheus.js";
import { jsonTable as jsonBody, table as rawBody } from "../../packages/checks/raw-body/dist/options.js";
import { table as createServiceClient } from "../../packages/endpoints/countersign/dist/client/options.js";
import { table as onMysql } from "../../packages/stores/store-sql/dist/mysql/options.js";
import { table as onPostgres } from "../../packages/stores/store-sql/dist/postgres/options.js";
import { table as createRedisStores } from "../../packages/stores/store-redis/dist/options.js";
import { table as onSqlite } from "../../packages/stores/store-sql/dist/sqlite/options.js";
import { table as webhookBasicAuth } from "../../packages/checks/webhook-basic-auth/dist/options.js";
import { table as webhookHmac } from "../../packages/checks/webhook-hmac/dist/options.js";
import { schemeTable } from "../../packages/checks/webhook-hmac/dist/scheme.js";
import { answersTable as webhookAnswers } from "../../packages/endpoints/countersign/dist/webhooks/endpoint/middleware.js";
import { table as webhookSteps } from "../../packages/endpoints/countersign/dist/webhooks/endpoint/webhook-endpoint-options.js";
import { table as createOutcomes } from "../../packages/endpoints/countersign/dist/outcomes/options.js";
import { table as createTaskQueue } from "../../packages/kernel/idempotency/dist/work/task-queue.js";
import { table as createInbox } from "../../packages/endpoints/countersign/dist/webhooks/inbox/inbox-options.js";
import {
  table as createWebhookHandler,
  transactionHandlerTable,
} from "../../packages/endpoints/countersign/dist/webhooks/events/webhook-handler-options.js";
import { payoutTable as payoutPlugin } from "../../packages/adapters/fastify/dist/payout-plugin.js";
import { webhookTable as webhookPlugin } from "../../packages/adapters/fastify/dist/plugins.js";
import {
  checkedTable as checkedRoute,
  idempotentTable as idempotentRoute,
  webhookTable as webhookRoute,
} from "../../packages/adapters/fetch/dist/routes.js";

// The endpoint gives its own scope and fingerprint.
const payoutScope = JSON.stringify(payoutStoreKey("").slice(0, -1));
const payoutKeys = {
  ...transactionGuardTable,
  scope: { ...transactionGuardTable.scope, byDefault: payoutScope },
  fingerprint: idempotencyGuard.fingerprint,
};

const { retentionMs, taskRetentionMs, pruneIntervalMs, lockTimeoutMs, now } = onPostgres;
const ofAllStores = { retentionMs, taskRetentionMs, pruneIntervalMs, lockTimeoutMs, now };

const names = (table) => Object.keys(table);
const only = (rules, wanted) => Object.fromEntries(wanted.map((name) => [name, rules[name]]));

/** The rules of another form that the first form does not share. */
function further(rules, first) {
  return only(
    rules,
    names(rules).filter((name) => first[name] !== rules[name]),
  );
}

/** The rules of a store that the page of all stores does not tell with the same default. */
function ownOf(rules) {
  return only(
    rules,
    names(rules).filter((name) => ofAllStores[name]?.byDefault !== rules[name].byDefault),
  );
}

const engine = "http-message-signatures/SignatureProfile";
const guard = "idempotency-guard/IdempotencyGuardOptions";
const keys = "idempotency/IdempotencyKeysOptions";
const inTransaction = "idempotency/TransactionOptions";
const liveKeys = "http-signature-verify/LiveKeysOptions";
const events = "webhooks/CreateWebhookHandlerOptions";
const worker = "work/WorkerOptions";

/** By the name that a page writes: `types` are searched in their order. */
export const optionTables = {
  contentDigest: {
    rules: contentDigest,
    types: ["content-digest/ContentDigestPolicyOptions", "content-digest/ContentDigestOptions"],
  },
  answerDigests: { rules: answerDigests, types: ["content-digest/AnswerDigestOptions"] },
  explain: {
    rules: { ...explainSignature, ...explainerTable },
    types: ["explain/ExplainSignatureOptions", "explain/RefusalExplainerOptions"],
  },
  guardErrors: { rules: guardErrors, types: ["express/GuardErrorsOptions"] },
  gracefulClose: { rules: gracefulClose, types: ["express/GracefulCloseOptions"] },
  httpSignatureVerify: {
    rules: httpSignatureVerify,
    types: ["http-signature-verify/HttpSignatureVerifyOptions", engine],
  },
  signResponse: { rules: signResponse, types: ["http-signature-verify/SignResponseOptions"] },
  fastify: {
    rules: { ...payoutPlugin, ...webhookPlugin },
    types: [
      "fastify/PayoutRouteOptions",
      "fastify/PayoutPluginOptions",
      "fastify/WebhookPluginOptions",
      "fastify/ConnectionOptions",
      "fastify/RefusalOptions",
    ],
  },
  fetch: {
    rules: { ...idempotentRoute, ...checkedRoute, ...webhookRoute },
    types: [
      "fetch/IdempotentRouteOptions",
      "fetch/CheckedRouteOptions",
      "fetch/WebhookRouteOptions",
      "fetch/RefusalOptions",
    ],
  },
  idempotencyKeys: { rules: idempotencyKeys, types: [keys] },
  idempotencyGuard: { rules: idempotencyGuard, types: [guard, keys] },
  "idempotencyGuard in a transaction": {
    rules: further(guardInTransaction, idempotencyGuard),
    types: ["idempotency-guard/IdempotencyTransactionOptions", inTransaction],
  },
  idempotencyKeyHeader: {
    rules: idempotencyKeyHeader,
    types: ["idempotency-guard/IdempotencyKeyHeaderOptions"],
  },
  replay: { rules: replayTable, types: ["idempotency-guard/ReplayOptions"] },
  inspector: { rules: inspector, types: ["inspector/InspectorOptions"] },
  ipAllowlist: { rules: ipAllowlist, types: ["ip-allowlist/IpAllowlistOptions"] },
  liveAllowlist: { rules: liveAllowlist, types: ["ip-allowlist/LiveAllowlistOptions"] },
  consoleLog: { rules: consoleLog, types: ["observe/ConsoleLogOptions", "observe/LogOptions"] },
  prometheus: { rules: prometheus, types: ["observe/PrometheusOptions"] },
  opentelemetry: { rules: opentelemetry, types: ["observe/OpenTelemetryOptions"] },
  payoutEndpoint: {
    rules: { ...payoutInTransaction, ...payoutAnswers },
    types: ["payout/PayoutTransactionOptions", "payout/CheckedPayoutOptions", "payout/Answers"],
  },
  "payoutEndpoint in lease mode": {
    rules: only(payoutSteps, ["signature", "idempotency"]),
    types: ["payout/PayoutOptions"],
  },
  "keys of payouts in a transaction": { rules: payoutKeys, types: [inTransaction, guard] },
  rawBody: { rules: rawBody, types: ["raw-body/RawBodyOptions"] },
  jsonBody: { rules: jsonBody, types: ["raw-body/JsonBodyOptions"] },
  createServiceClient: { rules: createServiceClient, types: ["client/ServiceClientOptions"] },
  stores: { rules: ofAllStores, types: ["postgres/CommonOptions"] },
  "createStores on MySQL": {
    rules: ownOf(onMysql),
    types: ["mysql/MysqlStoresOptions", "mysql/MysqlTables"],
  },
  "createStores on PostgreSQL": {
    rules: ownOf(onPostgres),
    types: ["postgres/PostgresStoresOptions", "postgres/PostgresDatabaseOptions", "postgres/PostgresTables"],
  },
  createRedisStores: { rules: ownOf(createRedisStores), types: ["store-redis/RedisStoresOptions"] },
  "createStores on SQLite": { rules: ownOf(onSqlite), types: ["sqlite/SqliteStoresOptions"] },
  webhookBasicAuth: {
    rules: webhookBasicAuth,
    types: ["webhook-basic-auth/BasicAuthChallenge", "webhook-basic-auth/VerifyForm"],
  },
  scheme: { rules: schemeTable, types: ["webhook-hmac/SignatureScheme"] },
  webhookHmac: {
    rules: webhookHmac,
    types: ["webhook-hmac/SignatureOptions", "webhook-hmac/SeveralSecrets"],
  },
  webhookEndpoint: {
    rules: { ...webhookSteps, ...webhookAnswers },
    types: ["webhooks/WebhookEndpointOptions", "webhooks/WebhookOptions"],
  },
  createWebhookHandler: { rules: createWebhookHandler, types: [events] },
  "createWebhookHandler in a transaction": {
    rules: further(transactionHandlerTable, createWebhookHandler),
    types: ["webhooks/TransactionHandlerOptions", inTransaction],
  },
  createOutcomes: {
    rules: createOutcomes,
    types: ["outcomes/OutcomesOptions", "outcomes/OutcomeSenderOptions", worker, inTransaction],
  },
  createTaskQueue: { rules: createTaskQueue, types: ["work/TaskQueueOptions", worker, inTransaction] },
  createInbox: { rules: createInbox, types: ["webhooks/CreateInboxOptions", worker, inTransaction] },
  jwksKeys: { rules: jwksKeys, types: ["http-signature-verify/JwksKeysOptions", liveKeys] },
  directoryKeys: { rules: directoryKeys, types: ["http-signature-verify/DirectoryKeysOptions", liveKeys] },
  cachedKeys: { rules: cachedKeys, types: ["http-signature-verify/CachedKeysOptions"] },
};
