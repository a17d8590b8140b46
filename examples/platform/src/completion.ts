/**
 * Ends an idempotency key or an event as part of the ledger's own transaction; when it throws or rejects, the transaction
 * never happened.
 */
export type Completion = (transaction: unknown) => unknown;
