import type { IdempotencyClaim, IdempotencyDecision, IdempotencyListQuery } from "./store.ts";
import type { TransactionClaim } from "./transactions/transaction-store.ts";

/** What an argument has to be. */
export interface ArgumentRule {
  readonly isFit: (value: unknown) => boolean;
  /** Follows "must be". */
  readonly form: string;
}

/** Drivers would bind an object as parameters of their own. */
export function textUpTo(max: number): ArgumentRule {
  return {
    isFit: (value) => typeof value === "string" && value.length >= 1 && value.length <= max,
    form: `a string of 1 to ${max} characters`,
  };
}

const anyText = textUpTo(512);

const duration: ArgumentRule = {
  isFit: (value) => typeof value === "number" && Number.isSafeInteger(value) && value > 0,
  form: "a whole number of milliseconds above 0",
};

const oneOf = (...values: readonly string[]): ArgumentRule => ({
  isFit: (value) => typeof value === "string" && values.includes(value),
  form: values.map((value) => JSON.stringify(value)).join(" or "),
});

/** What a store can keep, by argument name. */
const rules = {
  key: anyText,
  token: anyText,
  fingerprint: anyText,
  reason: anyText,
  scope: anyText,
  nonce: anyText,
  leaseMs: duration,
  retainMs: duration,
  // 0 is "without an end" to some engines.
  waitMs: duration,
  idleTimeoutMs: duration,
  outcome: oneOf("done", "released"),
  state: oneOf("running", "held", "done"),
  limit: {
    isFit: (value) => typeof value === "number" && Number.isInteger(value) && value >= 1 && value <= 1000,
    form: "an integer from 1 to 1000",
  },
} satisfies Readonly<Record<string, ArgumentRule>>;

type Arguments = Partial<Readonly<Record<keyof typeof rules, unknown>>>;

function assertFit(store: string, name: string, value: unknown, { isFit, form }: ArgumentRule): void {
  if (!isFit(value)) throw new TypeError(`${store}: ${name} must be ${form}`);
}

/** Throws a TypeError unless `decision` has a fence, `by` of 1 to 128 and `note` of 1 to 512 characters. `store` begins messages. */
function assertDecision(store: string, decision: unknown): asserts decision is IdempotencyDecision {
  const { fence, by, note }: Readonly<Record<string, unknown>> = Object(decision);
  if (typeof fence !== "number" || !Number.isSafeInteger(fence) || fence < 0) {
    throw new TypeError(`${store}: a decision needs { fence }, that of the record that was read`);
  }
  if (by !== undefined) assertFit(store, "by", by, textUpTo(128));
  if (note !== undefined) assertFit(store, "note", note, anyText);
}

/** Keeps the steps of a store from a closed store, an unusable engine, and arguments that its rules refuse. */
export class Gate<Name extends string> {
  protected readonly store: string;
  readonly #ruleOf: Readonly<Record<Name, ArgumentRule>>;
  readonly #assertEngine: () => void;
  #closed = false;

  /** `store` begins messages; `assertEngine` throws while the engine must not be used. */
  constructor(store: string, ruleOf: Readonly<Record<Name, ArgumentRule>>, assertEngine: () => void) {
    this.store = store;
    this.#ruleOf = ruleOf;
    this.#assertEngine = assertEngine;
  }

  close(): void {
    this.#closed = true;
  }

  assertUsable(): void {
    this.assertOpen();
    this.#assertEngine();
  }

  protected assertOpen(): void {
    if (this.#closed) throw new Error(`${this.store}: the store is closed`);
  }

  protected assertArguments(given: Partial<Readonly<Record<Name, unknown>>>): void {
    for (const [name, value] of Object.entries(given)) {
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- entries know no names
      assertFit(this.store, name, value, this.#ruleOf[name as Name]);
    }
  }
}

/** Guards every step of a store. Methods throw an Error if the store is closed or its engine unusable, a TypeError for unfit arguments. */
export class StoreGate extends Gate<keyof typeof rules> {
  /** `store` begins messages; `assertEngine` throws while the engine must not be used. */
  constructor(store: string, assertEngine: () => void = () => {}) {
    super(store, rules, assertEngine);
  }

  assertKey(key: unknown): void {
    this.#assert({ key });
  }

  assertOwner(key: unknown, token: unknown): void {
    this.#assert({ key, token });
  }

  assertClaim(key: unknown, { token, fingerprint, leaseMs }: IdempotencyClaim): void {
    this.#assert({ key, token, fingerprint, leaseMs });
  }

  /** For `TransactionStore.begin`. */
  assertTransaction({ nonce, keys, leaseMs, waitMs, idleTimeoutMs }: TransactionClaim): void {
    this.#assert({ leaseMs, waitMs, idleTimeoutMs });
    if (nonce !== undefined) this.assertNonce(nonce);
    for (const { key, token, fingerprint } of keys) this.#assert({ key, token, fingerprint });
    if (new Set(keys.map(({ key }) => key)).size === keys.length) return;
    throw new TypeError(`${this.store}: the keys of a transaction must differ`);
  }

  assertHeartbeat(key: unknown, token: unknown, leaseMs: unknown): void {
    this.#assert({ key, token, leaseMs });
  }

  assertHold(key: unknown, token: unknown, reason: unknown): void {
    this.#assert({ key, token, reason });
  }

  assertResolve(key: unknown, outcome: unknown, decision: unknown): void {
    this.#assert({ key, outcome });
    assertDecision(this.store, decision);
  }

  assertReopen(key: unknown, decision: unknown): void {
    this.#assert({ key });
    assertDecision(this.store, decision);
  }

  assertList({ state, limit }: IdempotencyListQuery): void {
    this.#assert({ state, limit });
  }

  assertNonce({ scope, nonce, token, retainMs }: Arguments): void {
    this.#assert({ scope, nonce, token, retainMs });
  }

  /** For the store of answers. */
  assertToken(token: unknown): void {
    this.#assert({ token });
  }

  /** For an answer that is kept in its own transaction, which may be open on the store's connection. */
  assertTokenIn(token: unknown): void {
    this.assertOpen();
    this.assertArguments({ token });
  }

  #assert(given: Arguments): void {
    this.assertUsable();
    this.assertArguments(given);
  }
}

// NUL: some drivers cut a text there, PostgreSQL refuses it. A lone surrogate: drivers send U+FFFD for it, so two keys would become one
// and the second payment would be answered as already made.
const unsafeToStore = /[\\\0\p{Surrogate}]/u;

/** Escapes a text that holds a backslash, a NUL or a lone surrogate, as in JSON. Only escaped texts hold a backslash: none collide. */
export function encodeText(text: string): string {
  return unsafeToStore.test(text) ? JSON.stringify(text).slice(1, -1) : text;
}

/** The inverse of {@link encodeText}. */
export function decodeText(stored: string): string {
  return stored.includes("\\") ? String(JSON.parse(`"${stored}"`)) : stored;
}
