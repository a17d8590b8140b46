import { GuardError } from "@countersign/core";
import { appAnswers, deliberate } from "@countersign/core/internal";
import type { KeptAnswer } from "./answer-record.ts";

const brand: unique symbol = Symbol.for("countersign.HandlerAnswer");

/** An answer that a handler returns from its transaction. Made by {@link answer}. */
export interface HandlerAnswer extends KeptAnswer {
  readonly [brand]: true;
}

const noBody = { headers: [], body: Buffer.alloc(0), [brand]: true } as const;

/**
 * What a handler returned, if it is an answer, of this or another copy of the package; else 200 without content. Throws what does not mean
 * that: a {@link refuse} that was returned like an answer, or any other Error, and a TypeError for a Response, which nobody would send.
 */
export function givenAnswer(returned: unknown): HandlerAnswer {
  appAnswers.throwFailure(
    returned,
    "a handler in a transaction returned a Response: return answer(status, body), or throw refuse(code)",
  );
  return isAnswer(returned) ? returned : { status: 200, ...noBody };
}

function isAnswer(returned: unknown): returned is HandlerAnswer {
  return typeof returned === "object" && returned !== null && Reflect.get(returned, brand) === true;
}

/**
 * Answers the request once the transaction has committed: a status from 200 to 299, and a body as JSON, serialised at once. Without it the
 * answer is an empty 200. Throws a TypeError on another status (throw {@link refuse} instead) and on a body that is no JSON.
 */
export function answer(status: number, body?: unknown): HandlerAnswer {
  if (!Number.isInteger(status) || status < 200 || status > 299 || status === 206) {
    throw new TypeError(
      `answer: status must be a success from 200 to 299, got ${String(status)}; to refuse, throw refuse(code)`,
    );
  }
  if (body === undefined) return { status, ...noBody };
  if (status === 204 || status === 205) throw new TypeError(`answer: a ${status} has no body`);
  const text: unknown = JSON.stringify(body);
  if (typeof text !== "string") throw new TypeError("answer: body must be a value that JSON can hold");
  const headers = [["content-type", "application/json; charset=utf-8"]] as const;
  return { status, headers, body: Buffer.from(text), [brand]: true };
}

/** What a refusal may say beside its code. */
export interface RefuseOptions {
  /** 400 to 499, but 401, 404, 408, 409, 425 and 429, which callers read otherwise. Default 400. */
  readonly status?: number | undefined;
  /** For the caller, in the problem details. Default: nothing. */
  readonly detail?: string | undefined;
}

const codeForm = /^[a-z][a-z0-9]*(?:-[a-z0-9]+)*$/;
const reservedStatuses = [401, 404, 408, 409, 425, 429];

/**
 * Refuses a payout for good: `throw refuse("account-frozen")` rolls the handler's writes back, frees the key and answers 400 with the code
 * in problem details (RFC 9457). Throws a TypeError on a code that is not in kebab-case.
 */
export function refuse(code: string, { status = 400, detail }: RefuseOptions = {}): GuardError {
  if (typeof code !== "string" || !codeForm.test(code)) {
    throw new TypeError('refuse: code must be in kebab-case, such as "account-frozen"');
  }
  if (!Number.isInteger(status) || status < 400 || status > 499 || reservedStatuses.includes(status)) {
    throw new TypeError(`refuse: status must be from 400 to 499 and none of ${reservedStatuses.join(", ")}`);
  }
  if (detail !== undefined && typeof detail !== "string") {
    throw new TypeError("refuse: detail must be a string");
  }
  const problem = detail === undefined ? { code } : { code, detail };
  return deliberate.mark(
    new GuardError({ status, code, message: `the handler has refused: ${code}`, problem }),
  );
}
