/**
 * Whether `key` is `<operation_key>.<from_id>.<to_id>`: at least three dot-separated parts, none blank. The alphabet of the
 * ids is not shown, so an id may hold dots itself, and more than three parts are fine.
 */
export function isIdempotencyKey(key: string): boolean {
  // "a.b.c" and "a.b.c " would be one key for a person and two payments for the bank.
  if (key !== key.trim()) return false;
  const parts = key.split(".");
  return parts.length >= 3 && parts.every((part) => part.trim() !== "");
}

/**
 * The key under which the idempotency store keeps a payout, for `store.resolve()` and look-ups by an operator. `scope` is the
 * option of payoutEndpoint(), default `payout`: one store can serve other endpoints as well.
 */
export function payoutStoreKey(idempotencyKey: string, scope = "payout"): string {
  return `${scope}:${idempotencyKey}`;
}
