/** The codes of the refusals that this package makes. */
export type IdempotencyCode = "draining" | "idempotency-lost" | "idempotency-store-unavailable";
