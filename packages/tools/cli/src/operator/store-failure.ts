import { exitCodes, type ExitCode } from "../command-io.ts";
import { printable } from "../printable.ts";
import { codeOf, messageOf } from "../thrown.ts";
import type { StoreLocation } from "./store-location.ts";

/** The store cannot be reached, or refuses; the message is the one line that is shown. */
export class StoreFailure extends Error {
  override readonly name: string = "StoreFailure";
  readonly exitCode: ExitCode;

  constructor(message: string, exitCode: ExitCode, options?: ErrorOptions) {
    super(message, options);
    this.exitCode = exitCode;
  }
}

// Errors of the connection; Node joins those of several addresses in one without a message of its own.
const unreachable: ReadonlyMap<string, string> = new Map([
  ["ECONNREFUSED", "the connection was refused"],
  ["ENOTFOUND", "the host name is unknown"],
  ["EAI_AGAIN", "the host name cannot be looked up"],
  ["ETIMEDOUT", "no answer in time"],
  ["EHOSTUNREACH", "there is no route to the host"],
  ["ENETUNREACH", "there is no route to the network"],
  ["ECONNRESET", "the connection was lost"],
  ["EPIPE", "the connection was lost"],
]);
const lost = /timeout|timed out|no answer|connection terminated|socket closed|client is closed/i;
// https://www.postgresql.org/docs/current/errcodes-appendix.html: connection exceptions, and a server that stops or starts.
const serverGone = /^(?:08...|57P0[123])$/;
const sqlState = /^[0-9A-Z]{5}$/;

/** What the engine or its driver threw, as one line without credentials. */
export function storeFailure(location: StoreLocation, error: unknown): StoreFailure {
  if (error instanceof StoreFailure) return error;
  const cause = { cause: error };
  const { shown } = location;
  const codes = causesOf(error).map(codeOf);
  const broken = codes.find((code) => unreachable.has(code));
  if (broken !== undefined) {
    const message = `${shown} cannot be reached: ${unreachable.get(broken)} (${broken})`;
    return new StoreFailure(message, exitCodes.unreachable, cause);
  }
  if (codes.includes("SQLITE_BUSY")) {
    return new StoreFailure(
      `${shown} is locked by another connection; try again`,
      exitCodes.otherwise,
      cause,
    );
  }
  const message = oneLine("hide" in location ? location.hide(messageOf(error)) : messageOf(error));
  return isGone(message, codes)
    ? new StoreFailure(`${shown} cannot be reached: ${message}`, exitCodes.unreachable, cause)
    : new StoreFailure(`${shown}: ${message}`, exitCodes.otherwise, cause);
}

// What the server says has a code, also where it mentions a timeout: then it has answered.
function isGone(message: string, codes: readonly string[]): boolean {
  const answered = codes.find((code) => sqlState.test(code));
  return answered === undefined ? lost.test(message) : serverGone.test(answered);
}

function causesOf(error: unknown): unknown[] {
  const causes = [error];
  for (let at = error; hasCause(at) && causes.length < 5; at = at.cause) causes.push(at.cause);
  return causes;
}

function hasCause(error: unknown): error is { readonly cause: unknown } {
  return typeof error === "object" && error !== null && "cause" in error && error.cause !== undefined;
}

// Nor does an operator have to know which function of which package found it.
const origin = /^(?:\w+Postgres\w*|\w+ (?:idempotency|nonce) store|create\w+): /;

/** A message of somebody else, fit for the one line that is shown. */
export function oneLine(message: string): string {
  const line = message.replaceAll(/\s+/g, " ").trim().replace(origin, "");
  return printable(line) || "failed without a message";
}
