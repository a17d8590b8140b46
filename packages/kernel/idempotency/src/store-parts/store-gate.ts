import type { IdempotencyClaim, IdempotencyListQuery } from "../store.ts";
import { assertDecision } from "../stored-record.ts";
import { assertListQuery } from "./list-query.ts";

/** One use of a nonce, before it is checked. */
interface NonceUse {
  readonly scope: unknown;
  readonly nonce: unknown;
  readonly token: unknown;
  readonly retainMs: unknown;
}

/**
 * What every step of a store begins with: the store is open, its engine can be used, and the arguments can be kept. Each check throws
 * an Error for the first two, a TypeError for the last.
 */
export class StoreGate {
  readonly #store: string;
  readonly #assertEngine: () => void;
  #closed = false;

  /** `store` begins every message; `assertEngine` throws while the engine must not be used. */
  constructor(store: string, assertEngine: () => void = () => {}) {
    this.#store = store;
    this.#assertEngine = assertEngine;
  }

  /** From here on nothing passes. */
  close(): void {
    this.#closed = true;
  }

  assertUsable(): void {
    assertOpen(this.#store, this.#closed);
    this.#assertEngine();
  }

  /** For a read. */
  assertKey(key: unknown): void {
    this.assertUsable();
    assertText(this.#store, "key", key);
  }

  /** For the steps of an owner. */
  assertOwner(key: unknown, token: unknown): void {
    this.assertKey(key);
    assertText(this.#store, "token", token);
  }

  /** For an owner's step in its own transaction, which may be open on the store's connection. */
  assertOwnerIn(key: unknown, token: unknown): void {
    assertOpen(this.#store, this.#closed);
    assertText(this.#store, "key", key);
    assertText(this.#store, "token", token);
  }

  assertClaim(key: unknown, { token, fingerprint, leaseMs }: IdempotencyClaim): void {
    this.assertOwner(key, token);
    assertText(this.#store, "fingerprint", fingerprint);
    assertDuration(this.#store, "leaseMs", leaseMs);
  }

  assertHeartbeat(key: unknown, token: unknown, leaseMs: unknown): void {
    this.assertOwner(key, token);
    assertDuration(this.#store, "leaseMs", leaseMs);
  }

  assertHold(key: unknown, token: unknown, reason: unknown): void {
    this.assertOwner(key, token);
    assertText(this.#store, "reason", reason);
  }

  assertResolve(key: unknown, outcome: unknown, decision: unknown): void {
    this.assertKey(key);
    assertOutcome(this.#store, outcome);
    assertDecision(this.#store, decision);
  }

  assertReopen(key: unknown, decision: unknown): void {
    this.assertKey(key);
    assertDecision(this.#store, decision);
  }

  assertList(query: IdempotencyListQuery): void {
    this.assertUsable();
    assertListQuery(this.#store, query);
  }

  assertNonce({ scope, nonce, token, retainMs }: NonceUse): void {
    this.assertUsable();
    assertText(this.#store, "scope", scope);
    assertText(this.#store, "nonce", nonce);
    assertText(this.#store, "token", token);
    assertDuration(this.#store, "retainMs", retainMs);
  }
}

/** Throws a TypeError unless `text` is a string of 1 to 512 characters: drivers would bind an object as parameters of their own. */
export function assertText(store: string, name: string, text: unknown): asserts text is string {
  if (typeof text !== "string" || text.length === 0 || text.length > 512) {
    throw new TypeError(`${store}: ${name} must be a string of 1 to 512 characters`);
  }
}

/** Throws a TypeError unless `durationMs` is a whole number of milliseconds above zero. */
export function assertDuration(
  store: string,
  name: string,
  durationMs: unknown,
): asserts durationMs is number {
  if (typeof durationMs !== "number" || !Number.isSafeInteger(durationMs) || durationMs <= 0) {
    throw new TypeError(`${store}: ${name} must be a whole number of milliseconds above 0`);
  }
}

/** Throws a TypeError unless `outcome` is one that an operator can give. */
export function assertOutcome(store: string, outcome: unknown): asserts outcome is "done" | "released" {
  if (outcome !== "done" && outcome !== "released") {
    throw new TypeError(`${store}: outcome must be "done" or "released"`);
  }
}

/** What a store's `completeIn` takes. */
export interface TransactionShape {
  /** In words, such as "the client on which your transaction is open". */
  readonly needs: string;
  /** Names of its functions. */
  readonly has: readonly string[];
  /** Members of what is often given in its place, and what that is: `{ getConnection: "a pool" }`. */
  readonly lacks: Readonly<Record<string, string>>;
  /** The address of the page about it. */
  readonly page: string;
}

/**
 * For `completeIn`, before anything is sent: throws a TypeError, which no guard takes for a failure of the store, unless `tx` has the
 * shape of what the store needs. The message says what that is, and the page about it.
 */
export function assertTransaction(
  store: string,
  tx: unknown,
  { needs, has, lacks, page }: TransactionShape,
): void {
  const fault = isObject(tx) ? (otherThing(tx, lacks) ?? missingFunction(tx, has)) : `got ${kindOf(tx)}`;
  if (fault === undefined) return;
  throw new TypeError(`${store}: completeIn needs ${needs}; ${fault}. See ${page}`);
}

function otherThing(tx: object, lacks: TransactionShape["lacks"]): string | undefined {
  const member = Object.keys(lacks).find((name) => name in tx);
  return member === undefined ? undefined : `got ${lacks[member]}`;
}

function missingFunction(tx: object, has: TransactionShape["has"]): string | undefined {
  const missing = has.find((name) => typeof Reflect.get(tx, name) !== "function");
  return missing === undefined ? undefined : `got an object that has no function ${missing}`;
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}

function kindOf(value: unknown): string {
  return value === undefined || value === null ? String(value) : `a ${typeof value}`;
}

/** Throws after close. */
export function assertOpen(store: string, closed: boolean): void {
  if (closed) throw new Error(`${store}: the store is closed`);
}

// NUL: some drivers cut a text at the first one, PostgreSQL refuses it. A lone surrogate: drivers send U+FFFD for it, so that two
// different keys would become one and the second payment would be answered as already made.
const unsafeToStore = /[\\\0\p{Surrogate}]/u;

/**
 * The text as stored: unchanged unless it holds a backslash, a NUL or a lone surrogate, otherwise escaped as in JSON. Different
 * strings stay different, because only escaped ones hold a backslash.
 */
export function encodeText(text: string): string {
  return unsafeToStore.test(text) ? JSON.stringify(text).slice(1, -1) : text;
}

/** The inverse of {@link encodeText}. */
export function decodeText(stored: string): string {
  return stored.includes("\\") ? String(JSON.parse(`"${stored}"`)) : stored;
}
