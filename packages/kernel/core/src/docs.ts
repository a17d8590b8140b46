/** The workspace's `homepage`; test/docs compares them. */
const homepage = "https://countersign.github.io/countersign/";

/** The address of a code's page; undefined for a code that is not on it. For logs and operators: never part of an answer. */
export function docsOf(code: string): string | undefined {
  return documented.has(code) ? pageOf(`reference/codes.html#${code}`) : undefined;
}

/** The address of a page by its path, `guide/doctor.html#memory-store`. */
export function pageOf(path: string): string {
  return homepage + path;
}

// Of all packages, since lines and errors are made here; test/docs compares them with the page.
const documented: ReadonlySet<string> = new Set(
  (
    "alg-invalid alg-mismatch allowlist-changed allowlist-empty allowlist-not-refreshed " +
    "allowlist-unavailable already-processed answer-not-kept answer-too-large answer-unavailable " +
    "answer-unreadable answer-unsendable answered-before-handler attempts-exhausted " +
    "authority-conflict body-already-consumed body-length-mismatch body-not-covered body-not-parsed body-too-large " +
    "business-lookup-unavailable business-unknown checked-after-claim commit-not-confirmed " +
    "completion-delayed completion-lost component-duplicate component-forbidden " +
    "component-name-invalid component-parameter-unsupported component-required component-unsupported " +
    "components-empty content-digest-invalid content-digest-mismatch content-digest-missing " +
    "content-digest-unsupported content-encoding-unsupported covered-field-invalid " +
    "covered-field-missing covered-field-repeated created-in-future created-invalid " +
    "credentials-malformed credentials-missing credentials-unavailable credentials-wrong " +
    "data-invalid dead-letter-failed draining envelope-invalid event-failed event-id-reused " +
    "event-not-begun event-timed-out event-type-ignored events-busy events-failed events-too-many " +
    "expires-invalid explanation-dropped field-invalid field-limit fingerprint-invalid fingerprint-missing " +
    "fingerprint-unavailable forwarded-for-ignored handler-answered-409 handler-timeout " +
    "handler-without-response header-lines-dropped held hold-lost host-repeated https-required idempotency-guard-twice " +
    "idempotency-key-invalid idempotency-key-missing idempotency-key-reused idempotency-lost " +
    "idempotency-store-unavailable in-flight ip-is-proxy ip-not-allowed ip-unknown " +
    "json-duplicate-key json-empty json-forbidden-key json-invalid json-number-range json-too-deep " +
    "json-too-many-values key-left-out key-mismatch key-retired key-revoked key-scope " +
    "key-store-unavailable key-unknown keyid-invalid keys-changed keys-not-refreshed lease-expired " +
    "lease-lost media-type-unsupported memory-store method-invalid method-not-allowed method-override " +
    "nonce-invalid nonce-replayed nonce-store-unavailable on-error-failed parameter-forbidden " +
    "path-not-mounted payload-id-malformed payload-id-missing payload-not-verified " +
    "payload-signature-malformed payload-signature-missing payload-signature-wrong " +
    "payload-timestamp-expired payload-timestamp-future payload-timestamp-malformed " +
    "payload-timestamp-missing payout-invalid postgres-not-durable proxy-in-allowlist prune-failed " +
    "query-not-covered raw-body-missing redis-forgets-on-restart redis-is-replica redis-may-evict " +
    "redis-not-checked redis-too-old repr-digest-invalid repr-digest-mismatch repr-digest-missing " +
    "repr-digest-unsupported request-aborted secrets-unavailable settlement-abandoned " +
    "signature-ambiguous signature-covers-little signature-expired signature-malformed signature-mismatch signature-missing " +
    "signature-request-refused signing-failed success-before-commit tag-invalid tag-mismatch target-invalid " +
    "timestamp-invalid transaction-not-begun transfer-coding-unsupported trust-proxy-misread " +
    "trust-proxy-unsafe unexpected-error webhook-not-hidden window-too-long"
  ).split(" "),
);
