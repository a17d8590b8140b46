import type { IdempotencyCode } from "@countersign/idempotency";

export type IdempotencyGuardCode =
  | IdempotencyCode
  | "already-processed"
  | "answer-unavailable"
  | "checked-after-claim"
  | "fingerprint-invalid"
  | "fingerprint-missing"
  | "fingerprint-unavailable"
  | "handler-answered-409"
  | "handler-without-response"
  | "held"
  | "idempotency-guard-twice"
  | "idempotency-key-invalid"
  | "idempotency-key-missing"
  | "idempotency-key-reused"
  | "in-flight"
  | "request-aborted"
  | "retry-later";
