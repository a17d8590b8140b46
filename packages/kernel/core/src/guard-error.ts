import { docsOf } from "./docs.ts";
import { causedBy } from "./errors.ts";

const brand: unique symbol = Symbol.for("countersign.GuardError");

/** An answer's header fields by name; a list is several lines, undefined none. */
export type HeaderFields = Readonly<Record<string, string | number | readonly string[] | undefined>>;

/** The code for a client that left before its request was complete. */
export const requestAborted = "request-aborted";

/** What a {@link GuardError} is made of. */
export interface GuardErrorInit<Code extends string = string> {
  /** HTTP status, 400 to 599. */
  readonly status: number;
  /** Stable machine code in kebab-case; each package's page lists its codes. */
  readonly code: Code;
  /** For the log, never the caller; must hold no secret, signature or key. */
  readonly message: string;
  readonly headers?: HeaderFields | undefined;
  /** Extension members of the problem details (RFC 9457 section 3.2). Never sent with a 401. */
  readonly problem?: Readonly<Record<string, unknown>> | undefined;
  readonly cause?: unknown;
}

/**
 * A guard's rejection of a request: the caller's fault, or a store that did not answer. Throws a TypeError on another status. Below 500
 * its stack has no frames. Tell it apart by `code` or {@link isGuardError}: `instanceof` fails across two copies of this package.
 */
export class GuardError<Code extends string = string> extends Error {
  readonly status: number;
  readonly code: Code;
  readonly headers: HeaderFields;
  readonly problem: Readonly<Record<string, unknown>>;
  /** The verdict, as on `countersign:guard`, once a guard has refused; for logs. Not enumerable: no error handler serialises it. */
  declare readonly verdict: Verdict | undefined;
  /** Always false, so that no error handler of the http-errors convention shows the message to the caller. */
  readonly expose: boolean = false;

  constructor(init: GuardErrorInit<Code>) {
    // A refusal with a success status would tell the caller that its order was taken.
    if (!Number.isInteger(init.status) || init.status < 400 || init.status > 599) {
      throw new TypeError(
        `GuardError: status must be an integer from 400 to 599, got ${String(init.status)}`,
      );
    }
    // A code says where a caller's fault was found; frames would double the cost of a refusal. No assignment: it throws on a frozen Error.
    const { stackTraceLimit } = Error;
    if (init.status < 500) Reflect.set(Error, "stackTraceLimit", 0);
    super(init.message, causedBy(init.cause));
    if (init.status < 500) Reflect.set(Error, "stackTraceLimit", stackTraceLimit);
    this.name = "GuardError";
    this.status = init.status;
    this.code = init.code;
    this.headers = { ...init.headers };
    this.problem = { ...init.problem };
    Object.defineProperty(this, brand, { value: true });
  }

  /** The address of the code's page; undefined for an app's own code. For logs: in no answer and, being a getter, no serialised error. */
  get docs(): string | undefined {
    return docsOf(this.code);
  }

  /** `status`, under the second name that http-errors gives it. */
  get statusCode(): number {
    return this.status;
  }
}

/** True for a {@link GuardError} of this or another copy of the package. */
export function isGuardError(error: unknown): error is GuardError {
  return error instanceof Error && brand in error && error[brand] === true;
}

/** A 503 for what is undecided, with Retry-After. Its code is in the answer too (`code` of the problem details). */
export function comeAgain<Code extends string>(
  code: Code,
  message: string,
  retryAfterSeconds: number,
): GuardErrorInit<Code> {
  return { ...unanswered(code, message, undefined, retryAfterSeconds), problem: { code } };
}

/** A 503 for a dependency that failed or was late, with Retry-After. */
export function unanswered<Code extends string>(
  code: Code,
  message: string,
  cause: unknown,
  retryAfterSeconds = 5,
): GuardErrorInit<Code> {
  return { status: 503, code, message, headers: { "Retry-After": String(retryAfterSeconds) }, cause };
}

/** What checks have found of a request by its verdict; undefined where unknown. */
export interface VerdictFacts {
  /** The signature's label (RFC 9421 section 4.1), as received. */
  readonly label?: string | undefined;
  /** As received: a refused signature's may name no key. */
  readonly keyid?: string | undefined;
  readonly subject?: string | undefined;
  /** When the signature claims to be made, in Unix seconds. */
  readonly created?: number | undefined;
  /** The verifier's time less `created`, in seconds: negative if the signer's clock is ahead. */
  readonly ageSeconds?: number | undefined;
  readonly components?: readonly string[] | undefined;
  /** As the store keeps it. */
  readonly idempotencyKey?: string | undefined;
}

/** What a check decided about a request. Wire text is escaped and cut, fit for a log. Never sent, except `id` with `verdictId`. */
export interface Verdict extends VerdictFacts {
  /** A UUID, new for each verdict. */
  readonly id: string;
  /** The factory's name, such as `httpSignatureVerify`. */
  readonly guard: string;
  /** `reject`: the caller's fault (4xx). `error`: the guard could not decide, or failed (5xx). */
  readonly outcome: "pass" | "reject" | "error";
  /** The GuardError's code; `unexpected-error` for other errors; undefined on a pass. */
  readonly code: string | undefined;
  /** The GuardError's HTTP status; 500 for other errors; undefined on a pass. */
  readonly status: number | undefined;
  /** Time in the guard alone, in milliseconds; undefined without subscribers at its start. */
  readonly durationMs: number | undefined;
  /** The part of it spent waiting for stores, in milliseconds, if measured. */
  readonly storeMs: number | undefined;
}

const nothingHappened: unique symbol = Symbol.for("countersign.nothingHappened");

/** Errors that say that no effect has happened: those of `refuse()` and `retryLater()`, and what a check refuses before the handler. */
export const deliberate = {
  mark<Thrown extends GuardError>(error: Thrown): Thrown {
    // A frozen error cannot be marked: it counts as any other throw.
    Reflect.defineProperty(error, nothingHappened, { value: true });
    return error;
  },
  saysNothingHappened(error: unknown): boolean {
    return isGuardError(error) && Reflect.get(error, nothingHappened) === true;
  },
};
