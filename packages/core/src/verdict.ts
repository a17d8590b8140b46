import { guardChannel, wasHeard } from "./diagnostics.ts";
import { isGuardError } from "./guard-error.ts";
import { createRequestFact, type RequestFact } from "./request-fact.ts";
import { nameOr, writeStderrLine } from "./stderr-lines.ts";

/** A check that decides about a request; `req` is the request as its framework knows it. */
export interface Judge {
  readonly name: string;
  readonly req: object;
}

// What was told of a request last: a check inside of another one has told of its error, and the outer one tells nobody twice.
const told: RequestFact<{ readonly name: string; readonly error: Error }> = createRequestFact();

/**
 * The checks of one request that a door composes, one after the other, each with its verdict on `countersign:guard`: begin(name)
 * before each, end() behind the last one, and `throw steps.refused(thrown)` for what one of them has thrown. No closure and no promise
 * for a check, of which a request has many.
 */
export class Steps implements Judge {
  name = "";
  readonly req: object;
  #startedAt = 0;

  constructor(req: object) {
    this.req = req;
  }

  /** The check before this one has passed. */
  begin(name: string): void {
    if (this.name !== "") publishVerdict(this, this.#startedAt, undefined);
    this.name = name;
    this.#startedAt = startVerdict();
  }

  /** The last check has passed. */
  end(): void {
    publishVerdict(this, this.#startedAt, undefined);
  }

  /** The present check has thrown this; returns the error to be thrown on. */
  refused(thrown: unknown): Error {
    const error = refusedWith(this.name, thrown);
    publishVerdict(this, this.#startedAt, error);
    return error;
  }
}

/** When a check began, for {@link publishVerdict}; 0 when nobody listens. */
export function startVerdict(): number {
  return guardChannel.hasSubscribers ? performance.now() : 0;
}

/** What is handed on for what a check threw. A value that is no Error, such as "route", would have skipped the refusal. */
export function refusedWith(name: string, thrown: unknown): Error {
  return thrown instanceof Error
    ? thrown
    : new Error(`${name} threw a value that is no Error`, { cause: thrown });
}

const passed = { status: undefined, code: undefined };

/** Publishes what a check decided: a pass without `error`. Not again what a check inside of this one has told. */
export function publishVerdict({ name, req }: Judge, startedAt: number, error: Error | undefined): void {
  if (error !== undefined) {
    if (told.get(req)?.error === error) return;
    told.set(req, { name, error });
  }
  if (startedAt === 0) return;
  const durationMs = performance.now() - startedAt;
  const { status, code } = error === undefined ? passed : verdictOf(error);
  const outcome = status === undefined ? "pass" : status < 500 ? "reject" : "error";
  guardChannel.publish({ guard: name, outcome, code, status, durationMs, req, error });
}

/**
 * Writes a refusal on stderr when nobody else hears of it: neither a subscriber of `countersign:guard` nor an `onReject`. For
 * doors, behind the answer. Without the target: the path of a webhook is a secret.
 */
export function writeUnheardRefusal({ name, req }: Judge, method: unknown, error: Error): void {
  if (guardChannel.hasSubscribers || wasHeard(req)) return;
  const { status, code } = verdictOf(error);
  const what = `refused a ${nameOr(method, "request")} with ${status}`;
  const teller = told.get(req);
  writeStderrLine({ guard: teller?.error === error ? teller.name : name, code, what, error });
}

function verdictOf(error: unknown): { readonly status: number; readonly code: string } {
  return isGuardError(error) ? error : { status: 500, code: "unexpected-error" };
}
