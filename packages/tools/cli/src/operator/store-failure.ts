import { CommandError, codeOf, exitCodes, memberOf, messageOf } from "../command-io.ts";
import { printableLine } from "../output.ts";
import type { StoreLocation } from "./store-target.ts";

export const openTimeoutMs = 5000;
export const queryTimeoutMs = 60_000;
export const goodbyeMs = 2_000;

/** The promise's result, or an error after `openTimeoutMs`. The work goes on: the caller ends it. */
export function openedInTime<T>(shown: string, work: Promise<T>): Promise<T> {
  return withinTime(openTimeoutMs, work, (why) => {
    return new CommandError(`${shown} cannot be reached: ${why}`, exitCodes.unreachable);
  });
}

/** The promise's result, or the error that `late` makes after `timeoutMs`. The work goes on. */
export async function withinTime<T>(
  timeoutMs: number,
  work: Promise<T>,
  late: (why: string) => Error,
): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const passed = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(late(`no answer within ${timeoutMs} ms`)), timeoutMs);
  });
  try {
    return await Promise.race([work, passed]);
  } finally {
    clearTimeout(timer);
  }
}

// For several addresses Node joins the errors in one without a message.
const unreachable: ReadonlyMap<string, string> = new Map([
  ["ECONNREFUSED", "the connection was refused"],
  ["ENOTFOUND", "the host name is unknown"],
  ["EAI_AGAIN", "the host name cannot be looked up"],
  ["ETIMEDOUT", "no answer in time"],
  ["EHOSTUNREACH", "there is no route to the host"],
  ["ENETUNREACH", "there is no route to the network"],
  ["ECONNRESET", "the connection was lost"],
  ["EPIPE", "the connection was lost"],
  ["PROTOCOL_CONNECTION_LOST", "the connection was lost"],
]);
const lost = /timeout|timed out|no answer|connection terminated|socket closed|client is closed/i;
// Connection exceptions, and a server that stops or starts: https://www.postgresql.org/docs/current/errcodes-appendix.html
const serverGone = /^(?:08...|57P0[123])$/;
const sqlState = /^[0-9A-Z]{5}$/;

/** One line without credentials. */
export function storeFailure({ shown, hide }: StoreLocation, error: unknown): CommandError {
  if (error instanceof CommandError) return error;
  const codes = causesOf(error).map(codeOf);
  const broken = codes.find((code) => unreachable.has(code));
  const message =
    broken === undefined ? oneLine(hide(messageOf(error))) : `${unreachable.get(broken)} (${broken})`;
  const isLocked = codes.includes("SQLITE_BUSY");
  const cause = { cause: error };
  // MariaDB's driver keeps the SQLSTATE apart.
  const states = causesOf(error).map((one) => String(memberOf(one, "sqlState")));
  if (broken !== undefined || (!isLocked && isGone(message, [...states, ...codes])))
    return new CommandError(`${shown} cannot be reached: ${message}`, exitCodes.unreachable, cause);
  const what = isLocked ? " is locked by another connection; try again" : `: ${message}`;
  return new CommandError(shown + what, exitCodes.otherwise, cause);
}

// An error with an SQLSTATE is the server's answer, even if it mentions a timeout.
function isGone(message: string, codes: readonly string[]): boolean {
  const answered = codes.find((code) => sqlState.test(code));
  return answered === undefined ? lost.test(message) : serverGone.test(answered);
}

export function causesOf(error: unknown): unknown[] {
  const causes = [error];
  for (
    let cause = memberOf(error, "cause");
    cause !== undefined && causes.length < 5;
    cause = memberOf(cause, "cause")
  )
    causes.push(cause);
  return causes;
}

// An operator need not know which function of which package found it.
const origin = /^(?:\w+(?:Postgres|Mysql)\w*|\w+ (?:idempotency|nonce) store|create\w+): /;

export function oneLine(message: string): string {
  return printableLine(message.trim()).replace(origin, "") || "failed without a message";
}
