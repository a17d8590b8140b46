import { GuardError, isGuardError } from "@countersign/guard";
import { DatabaseError } from "pg";

// SQLSTATE classes: connection, rollback, resources, locks and cancellations, shutdown, the server's own input and output.
const passing = new Set(["08", "40", "53", "55", "57", "58"]);

/**
 * Settles as `step` does. What fails because the server cannot answer now rejects as a GuardError 503: the service comes again,
 * and what became of the step is seen by then.
 */
export async function orUnavailable<T>(step: Promise<T>): Promise<T> {
  try {
    return await step;
  } catch (error) {
    throw isPassing(error) ? unavailable(error) : error;
  }
}

function isPassing(error: unknown): boolean {
  if (error instanceof DatabaseError) return passing.has(error.code?.slice(0, 2) ?? "");
  if (typeof error !== "object" || error === null || isGuardError(error)) return false;
  // Of the socket, or of the sockets of each address of a name.
  if ("syscall" in error || "errors" in error) return true;
  // The driver's own errors have no code.
  const message = "message" in error ? String(error.message) : "";
  return /^Connection terminated|^Client (?:has|was)|timeout/i.test(message);
}

function unavailable(cause: unknown): GuardError {
  return new GuardError({
    status: 503,
    code: "database-unavailable",
    message: "the database of the payouts does not answer",
    headers: { "Retry-After": "2" },
    cause,
  });
}
