import type { CoreCode } from "./codes.ts";
import { GuardError } from "./guard-error.ts";

/**
 * Something that a check knows of a request or response and that no other code can read, forge or overwrite. Trust decisions
 * read facts, never a property of the request, which every middleware can write.
 */
export interface RequestFact<T> {
  get(subject: object): T | undefined;
  set(subject: object, value: T): void;
  delete(subject: object): void;
}

// One entry for each request holds all facts: entries of WeakMaps cost time, and more in the garbage collector.
const records = new WeakMap<object, unknown[]>();
let count = 0;

/** Makes a {@link RequestFact}. */
export function createRequestFact<T>(): RequestFact<T> {
  const index = count++;
  return {
    get(subject) {
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- only set() below writes at this index
      return SharedFacts.recordOf(subject)?.[index] as T | undefined;
    },
    set(subject, value) {
      record(subject)[index] = value;
    },
    delete(subject) {
      const known = SharedFacts.recordOf(subject);
      if (known !== undefined) known[index] = undefined;
    },
  };
}

/**
 * For doors: what is made of a native request has its facts, and the other way round: one request under two names. A base class,
 * because a second entry for each request would cost the garbage collector 20 us.
 */
export abstract class SharedFacts {
  readonly #record: unknown[];

  constructor(native: object) {
    this.#record = record(native);
  }

  /** The facts of a native request, or of what was made of it. */
  static recordOf(subject: object): unknown[] | undefined {
    return #record in subject ? subject.#record : records.get(subject);
  }
}

/** For doors: from here on `other`, a second native object, has the facts of `native`. */
export function shareFacts(native: object, other: object): void {
  records.set(other, record(native));
}

function record(subject: object): unknown[] {
  const known = SharedFacts.recordOf(subject);
  if (known !== undefined) return known;
  const fresh: unknown[] = [];
  records.set(subject, fresh);
  return fresh;
}

const keyClaimed: RequestFact<true> = createRequestFact();

/** Records that an idempotency key was claimed on behalf of the request. */
export function markKeyClaimed(req: object): void {
  keyClaimed.set(req, true);
}

/**
 * Throws a GuardError (500, `checked-after-claim`) when an idempotency key was claimed before this check: whoever fails it could
 * hold a payer's keys, without a signature of the payer.
 */
export function assertNoKeyClaimed(factory: string, req: object): void {
  if (keyClaimed.get(req) === undefined) return;
  throw new GuardError<CoreCode>({
    status: 500,
    code: "checked-after-claim",
    message:
      `${factory}() runs behind idempotencyGuard(), where strangers can claim a payer's keys: ` +
      "mount idempotencyGuard() after every check of who is calling",
  });
}
