import { docsOf } from "./docs.ts";

const brand: unique symbol = Symbol.for("countersign.GuardError");

/** Header fields of an answer, by name; a list is several lines, undefined is none. */
export type HeaderFields = Readonly<Record<string, string | number | readonly string[] | undefined>>;

/** The code with which a check says that the client left before its request was complete. */
export const requestAborted = "request-aborted";

/** What a {@link GuardError} is made of. */
export interface GuardErrorInit<Code extends string = string> {
  /** HTTP status of the answer, 400 to 599. */
  readonly status: number;
  /** Stable machine code in kebab-case; each package's page lists its codes. */
  readonly code: Code;
  /** For the log. It never reaches the caller; it must hold no secret, signature or key. */
  readonly message: string;
  /** Header fields of the answer, for example Retry-After. */
  readonly headers?: HeaderFields | undefined;
  /** Extension members of the problem details body (RFC 9457 section 3.2). Never sent with a 401. */
  readonly problem?: Readonly<Record<string, unknown>> | undefined;
  /** The error that led to this one. */
  readonly cause?: unknown;
}

/**
 * The rejection of a request by a guard: the caller's fault, or a store that did not answer. Throws a TypeError on another status.
 * Below 500 its stack has no frames. `Code` is what `code` can be; each package exports a union of its codes. Tell it apart by `code` or {@link isGuardError};
 * `instanceof` fails across two copies of this package.
 */
export class GuardError<Code extends string = string> extends Error {
  readonly status: number;
  readonly code: Code;
  readonly headers: HeaderFields;
  readonly problem: Readonly<Record<string, unknown>>;
  /**
   * What was decided about the request, once a guard has refused it: the record of `countersign:guard`, for logs. Not enumerable, so
   * that no error handler that serialises the error shows it.
   */
  declare readonly verdict: Verdict | undefined;
  /** Always false: no error handler that follows the http-errors convention may show the message to the caller. */
  readonly expose: boolean = false;

  constructor(init: GuardErrorInit<Code>) {
    // A refusal with a status of success would tell the caller that its order was taken.
    if (!Number.isInteger(init.status) || init.status < 400 || init.status > 599) {
      throw new TypeError(
        `GuardError: status must be an integer from 400 to 599, got ${String(init.status)}`,
      );
    }
    // Where a caller's fault was found says its code; frames cost as much as all else of a refusal. Not by an assignment, which
    // throws where Error is frozen.
    const { stackTraceLimit } = Error;
    if (init.status < 500) Reflect.set(Error, "stackTraceLimit", 0);
    super(init.message, init.cause === undefined ? undefined : { cause: init.cause });
    if (init.status < 500) Reflect.set(Error, "stackTraceLimit", stackTraceLimit);
    this.name = "GuardError";
    this.status = init.status;
    this.code = init.code;
    this.headers = { ...init.headers };
    this.problem = { ...init.problem };
    Object.defineProperty(this, brand, { value: true });
  }

  /**
   * The address of the code's page; undefined for a code of an app's own. For logs: no answer has it, nor, being a getter of the class,
   * a serialised error.
   */
  get docs(): string | undefined {
    return docsOf(this.code);
  }

  /** The same as `status`, under the name that http-errors also gives it. */
  get statusCode(): number {
    return this.status;
  }
}

/** Whether `error` is a {@link GuardError}, of this or another copy of the package. */
export function isGuardError(error: unknown): error is GuardError {
  return error instanceof Error && brand in error && error[brand] === true;
}

/** A 503 for what is not decided, and when to come again. Its code stands in the answer too (`code` of the problem details). */
export function comeAgain<Code extends string>(
  code: Code,
  message: string,
  retryAfterSeconds: number,
): GuardErrorInit<Code> {
  const headers = { "Retry-After": String(retryAfterSeconds) };
  return { status: 503, code, message, headers, problem: { code } };
}

/** What checks have found of a request when its verdict is given. A member is undefined where no check knows it. */
export interface VerdictFacts {
  /** The label of the signature (RFC 9421 section 4.1), as received. */
  readonly label?: string | undefined;
  /** As received: that of a refused signature may name no key. */
  readonly keyid?: string | undefined;
  /** Whose signing key it is. */
  readonly subject?: string | undefined;
  /** When the signature says that it was made, in Unix seconds. */
  readonly created?: number | undefined;
  /** The verifier's time less `created`, in seconds: negative where the signer's clock is ahead. */
  readonly ageSeconds?: number | undefined;
  /** The covered components in the order of the signature. */
  readonly components?: readonly string[] | undefined;
  /** As the store keeps it. */
  readonly idempotencyKey?: string | undefined;
}

/**
 * What a check has decided about a request, as one record. Text from the wire is escaped and cut, so that it can stand in a log. Never
 * sent, except `id` with `verdictId`.
 */
export interface Verdict extends VerdictFacts {
  /** A UUID of this verdict alone. */
  readonly id: string;
  /** The factory's name, for example `httpSignatureVerify`. */
  readonly guard: string;
  /** `reject`: the caller's fault (4xx). `error`: the guard could not decide, or failed (5xx). */
  readonly outcome: "pass" | "reject" | "error";
  /** The code of the GuardError; `unexpected-error` for anything else; undefined on a pass. */
  readonly code: string | undefined;
  /** The HTTP status of the GuardError; 500 for anything else; undefined on a pass. */
  readonly status: number | undefined;
  /** Time in the guard alone, in milliseconds; undefined without subscribers at its start. */
  readonly durationMs: number | undefined;
  /** The part of it that was spent waiting for stores, in milliseconds, if measured. */
  readonly storeMs: number | undefined;
}
