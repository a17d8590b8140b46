import type { CoreCode } from "./codes.ts";
import { GuardError } from "./guard-error.ts";

/** What a check knows of a request or response; no other code can read or forge it, unlike properties. Trust decisions read facts. */
export interface RequestFact<T> {
  get(subject: object): T | undefined;
  set(subject: object, value: T): void;
  delete(subject: object): void;
}

let count = 0;

export function createRequestFact<T>(): RequestFact<T> {
  const index = count++;
  return {
    get(subject) {
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- only set() below writes at this index
      return Facts.of(subject)?.[index] as T | undefined;
    },
    set(subject, value) {
      record(subject)[index] = value;
    },
    delete(subject) {
      const known = Facts.of(subject);
      if (known !== undefined) known[index] = undefined;
    },
  };
}

/** For adapters: gives `other`, a second object for the same request, the facts of `native`. */
export function shareFacts(native: object, other: object): void {
  Facts.put(other, record(native));
}

function record(subject: object): unknown[] {
  const known = Facts.of(subject);
  if (known !== undefined) return known;
  const fresh: unknown[] = [];
  Facts.put(subject, fresh);
  return fresh;
}

/** Returns its argument from the constructor, so that a subclass puts its private fields there. */
// oxlint-disable-next-line typescript/no-extraneous-class -- only the constructor of a class puts private fields
class Subject {
  constructor(subject: object) {
    return subject;
  }
}

/**
 * All facts of a request, in a private field on the request itself. A WeakMap keeps what its values lead to, mostly the request, alive
 * until the next full collection, which costs 5 to 20 us a request.
 */
class Facts extends Subject {
  #record: unknown[];

  private constructor(subject: object, facts: unknown[]) {
    super(subject);
    this.#record = facts;
  }

  static of(subject: object): unknown[] | undefined {
    return #record in subject ? subject.#record : ofFrozen.get(subject);
  }

  static put(subject: object, facts: unknown[]): void {
    if (#record in subject) subject.#record = facts;
    else if (Object.isExtensible(subject)) Reflect.construct(Facts, [subject, facts]);
    else ofFrozen.set(subject, facts);
  }
}

// Newer engines put no field on a frozen object, such as a test's literal.
const ofFrozen = new WeakMap<object, unknown[]>();

const keyClaimed: RequestFact<true> = createRequestFact();

/** Of one request: whether a guard has claimed its idempotency key. */
export const keyClaims = { mark: markKeyClaimed, assertNone: assertNoKeyClaimed, misplaced };

function markKeyClaimed(req: object): void {
  keyClaimed.set(req, true);
}

/**
 * Throws a GuardError (500, `checked-after-claim`) when a key was claimed before this check: a caller who fails the check could hold a
 * payer's idempotency keys without the payer's signature.
 */
function assertNoKeyClaimed(factoryName: string, req: object): void {
  if (keyClaimed.get(req) === undefined) return;
  throw misplaced(
    `${factoryName}() runs after idempotencyGuard(), where strangers can claim a payer's keys: ` +
      "mount idempotencyGuard() after every check of who is calling, and an endpoint once on a route",
  );
}

/** Returns the GuardError (500, `checked-after-claim`) of a check that stands after the guard. */
function misplaced(message: string): GuardError<CoreCode> {
  return new GuardError<CoreCode>({ status: 500, code: "checked-after-claim", message });
}
