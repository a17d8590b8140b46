/**
 * Where pages are, with `*` for a page's name: the repository's markdown, until a site serves them (docs/releasing.md).
 * test/docs compares it with the workspace's manifest.
 */
const pages = "https://github.com/countersign/countersign/blob/main/site/pages/*.md";

/** The address of a code's page; undefined for a code that is not on it. For logs and operators: never part of an answer. */
export function docsOf(code: string): string | undefined {
  return documented.has(code) ? pageOf(`reference/codes#${code}`) : undefined;
}

/** The address of a page, or of a place in it: `guide/doctor#memory-store`. */
export function pageOf(place: string): string {
  const [page = "", anchor] = place.split("#");
  const address = pages.replace("*", page);
  return anchor === undefined ? address : `${address}#${anchor}`;
}

// Of all packages, since lines and errors are made here; test/docs compares them with the page.
const documented: ReadonlySet<string> = new Set(
  (
    "alg-invalid alg-mismatch allowlist-changed allowlist-empty allowlist-not-refreshed " +
    "allowlist-unavailable already-processed answer-not-kept answer-too-large answer-unavailable " +
    "answer-unreadable answer-unsendable answered-before-handler attempts-exhausted " +
    "authority-conflict body-already-consumed body-length-mismatch body-not-covered body-too-large " +
    "business-lookup-unavailable business-unknown checked-after-claim commit-unknown " +
    "completion-delayed completion-lost component-duplicate component-forbidden " +
    "component-name-invalid component-parameter-unsupported component-required component-unsupported " +
    "components-empty content-digest-invalid content-digest-mismatch content-digest-missing " +
    "content-digest-unsupported content-encoding-unsupported covered-field-invalid " +
    "covered-field-missing covered-field-repeated created-in-future created-invalid " +
    "credentials-malformed credentials-missing credentials-unavailable credentials-wrong " +
    "data-invalid dead-letter-failed draining envelope-invalid event-failed event-id-reused " +
    "event-malformed event-timed-out event-type-ignored events-busy events-failed events-too-many " +
    "expires-invalid field-invalid field-limit fingerprint-invalid fingerprint-missing " +
    "fingerprint-unavailable forwarded-for-ignored handler-answered-409 handler-timeout " +
    "handler-without-response header-lines-dropped held hold-lost host-repeated https-required idempotency-guard-twice " +
    "idempotency-key-invalid idempotency-key-missing idempotency-key-reused idempotency-lost " +
    "idempotency-store-unavailable in-flight ip-is-proxy ip-not-allowed ip-unknown " +
    "json-duplicate-key json-empty json-forbidden-key json-invalid json-lone-surrogate json-number-range json-too-deep " +
    "json-too-many-values key-left-out key-mismatch key-retired key-revoked key-scope " +
    "key-store-unavailable key-unknown key-unusable keyid-invalid keys-changed keys-not-refreshed " +
    "late-statement lease-expired lease-lost media-type-unsupported memory-store method-invalid " +
    "method-not-allowed method-override mysql-not-durable nonce-invalid nonce-replayed " +
    "nonce-store-unavailable nothing-written on-error-failed " +
    "outcome-differs outcome-not-sent outcome-overdue parameter-forbidden " +
    "path-not-mounted payload-id-malformed payload-id-missing payload-not-verified " +
    "payload-signature-malformed payload-signature-missing payload-signature-wrong " +
    "payload-timestamp-expired payload-timestamp-future payload-timestamp-malformed " +
    "payload-timestamp-missing payout-invalid policy-unknown policy-unusable postgres-not-durable proxy-in-allowlist prune-failed " +
    "query-not-covered raw-body-missing redis-forgets-on-restart redis-is-replica redis-may-evict " +
    "redis-not-checked redis-too-old repr-digest-invalid repr-digest-mismatch repr-digest-missing " +
    "repr-digest-unsupported request-aborted retry-later secrets-unavailable settlement-abandoned " +
    "signature-ambiguous signature-covers-little signature-expired signature-malformed signature-mismatch signature-missing " +
    "signature-request-refused signing-failed tag-invalid tag-mismatch target-invalid " +
    "task-dead task-failed task-gone task-given-back " +
    "timestamp-invalid transaction-broken transaction-conflict transaction-held " +
    "transaction-timed-out " +
    "transaction-unavailable transaction-unknown transaction-unused transfer-coding-unsupported trust-proxy-misread " +
    "trust-proxy-unsafe unexpected-error webhook-not-hidden window-too-long work-store-failed"
  ).split(" "),
);
