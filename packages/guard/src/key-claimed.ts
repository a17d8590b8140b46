import { GuardError } from "./guard-error.ts";
import { createRequestFact, type RequestFact } from "./request-fact.ts";
import type { GuardRequest } from "./types.ts";

const keyClaimed: RequestFact<true> = createRequestFact();

/** Records that an idempotency key was claimed on behalf of the request. */
export function markKeyClaimed(req: GuardRequest): void {
  keyClaimed.set(req, true);
}

/**
 * Throws a GuardError (500, `checked-after-claim`) when an idempotency key was claimed before this check: whoever fails it could
 * hold a payer's keys, without a signature of the payer.
 */
export function assertNoKeyClaimed(factory: string, req: GuardRequest): void {
  if (keyClaimed.get(req) === undefined) return;
  throw new GuardError({
    status: 500,
    code: "checked-after-claim",
    message:
      `${factory}() runs behind idempotencyGuard(), where strangers can claim a payer's keys: ` +
      "mount idempotencyGuard() after every check of who is calling",
  });
}
