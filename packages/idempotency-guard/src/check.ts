import { hash, randomUUID } from "node:crypto";
import { types } from "node:util";
import {
  capturedRawBody,
  createRequestFact,
  GuardError,
  identifierFault,
  inTime,
  markKeyClaimed,
  publishBuilt,
  type OptionOwner,
  type RequestFact,
} from "@countersign/core";
import {
  IdempotencyKeys,
  Waiters,
  type Awaitable,
  type DrainOptions,
  type DrainReport,
  type OwnedKey,
  type ResolvedKeyOptions,
} from "@countersign/idempotency";
import type { IdempotencyGuardCode } from "./codes.ts";
import { OwnedRun, type Attempt, type GuardState } from "./run.ts";
import { factory, resolveOptions, type IdempotencyGuardOptions } from "./options.ts";
import { alreadyProcessed, clientLeft, held, inFlight } from "./refusals.ts";

/** Does `work` with a signal that aborts when the client leaves meanwhile, or has left. A door's way to know. */
export type WhileConnected = <T>(work: (left: AbortSignal) => Promise<T>) => Promise<T>;

/** Owns idempotency keys on behalf of requests. `Native` is the request of a framework. Made by {@link keyOwner}. */
export interface KeyOwner<Native> {
  /**
   * Claims the key of a request, or waits for its first attempt. Rejects with a GuardError: 409 for a key that is done, 503 for one
   * that runs or is held, or when the store does not tell, 400 for what is no key. What it resolves to owns the key: start the
   * handler by it, keep the answer back, settle it by the status of the answer, and let out what settle() says.
   */
  own(this: void, native: Native, whileConnected: WhileConnected): Promise<OwnedRun>;
  /**
   * For the end of the process, when the server takes no connection any more: claims no key from here on (503, `draining`), and
   * waits until what is under way is settled and recorded. Resolves to what is left after `timeoutMs`.
   */
  drain(this: void, options?: DrainOptions): Promise<DrainReport>;
}

const maxKeyLength = 512;

const owners: RequestFact<OwnedRun> = createRequestFact();

/** The run that owns the key of this very request. */
export function runOf(subject: object): OwnedRun | undefined {
  return owners.get(subject);
}

/** Throws an OptionError on a bad option; `owner` is who it says has it. */
export function keyOwner<Native extends object>(
  options: IdempotencyGuardOptions<Native>,
  owner: OptionOwner = factory,
): KeyOwner<Native> {
  const resolved = resolveOptions(options, owner);
  publishBuilt(factory, owner, () => ({
    scope: resolved.scope ?? null,
    recovery: resolved.recovery,
    leaseMs: resolved.leaseMs,
    retentionMs: resolved.store.retentionMs ?? null,
    lists: typeof resolved.store.list === "function",
  }));
  const waiters = new Waiters(resolved);
  const keys = new IdempotencyKeys({ ...resolved, onSettled: (key) => waiters.wake(key) });
  const state: GuardState = { options: resolved, keys, waiters };
  const { fingerprint: fingerprintOf = bodyFingerprint } = resolved;
  return {
    async own(native, whileConnected) {
      if (owners.get(native) !== undefined) throw claimedTwice();
      const key = checkIdempotencyKey(resolved.key(native), resolved.scope);
      const fingerprint = checkFingerprint(await fingerprintInTime(fingerprintOf(native), resolved));
      const attempt: Attempt = { key, fingerprint, token: randomUUID(), req: native };
      const owned = await claim(state, attempt, whileConnected);
      const run = new OwnedRun(state, attempt, owned);
      owners.set(native, run);
      markKeyClaimed(native);
      return run;
    },
    drain: (drainOptions) => keys.drain(drainOptions),
  };
}

/** Claims the key and goes by the answer: again when it was freed for one who waited. */
async function claim(state: GuardState, attempt: Attempt, whileConnected: WhileConnected): Promise<OwnedKey> {
  const { keys, waiters, options } = state;
  let waitUntilMs: number | undefined;
  for (;;) {
    // oxlint-disable-next-line no-await-in-loop -- one claim after the other, each behind a wait
    const result = await keys.acquire(attempt);
    if (result.status === "acquired") return result;
    if (result.status === "done") throw alreadyProcessed(state, attempt, result.fingerprint);
    if (result.status === "held") throw held(state, attempt, result);
    waitUntilMs ??= performance.now() + options.waitMs;
    const leftMs = waitUntilMs - performance.now();
    // oxlint-disable-next-line no-await-in-loop -- see above
    const outcome = await whileConnected(async (left) => waiters.wait(attempt.key, left, leftMs));
    if (outcome === "client-left") throw clientLeft();
    if (outcome === "timeout") throw inFlight(state);
    if (outcome === "claim") continue;
    if (outcome.state === "held") throw held(state, attempt, outcome);
    throw alreadyProcessed(state, attempt, outcome.fingerprint);
  }
}

function claimedTwice(): GuardError<IdempotencyGuardCode> {
  return new GuardError<IdempotencyGuardCode>({
    status: 500,
    code: "idempotency-guard-twice",
    message: "idempotencyGuard() runs twice for one request: mount it once on each route",
  });
}

/**
 * The key as the option `key` returned it, behind its scope; throws a GuardError (400) on anything that a store cannot keep as it
 * is, or that a reader could take for another key.
 */
export function checkIdempotencyKey(key: unknown, scope?: string): string {
  if (key === undefined || key === null || key === "") {
    throw new GuardError<IdempotencyGuardCode>({
      status: 400,
      code: "idempotency-key-missing",
      message: "the request has no idempotency key",
    });
  }
  if (typeof key !== "string") {
    // Every request would be refused: the integration is wrong, not the caller.
    if (types.isPromise(key))
      throw new TypeError("idempotencyGuard: option key must return the key, not a promise");
    throw keyInvalid(`is no string but a ${typeof key}`);
  }
  const stored = storedKey(scope, key);
  const longest = maxKeyLength - (stored.length - key.length);
  if (key.length > longest) throw keyInvalid(`has ${key.length} characters, over ${longest}`);
  // A lone surrogate has no UTF-8 form: an engine may replace it, and two keys would become one. NUL ends a text in some.
  const fault = identifierFault(key);
  if (fault !== undefined) throw keyInvalid(fault);
  return stored;
}

function keyInvalid(fault: string): GuardError<IdempotencyGuardCode> {
  return new GuardError<IdempotencyGuardCode>({
    status: 400,
    code: "idempotency-key-invalid",
    message: `the idempotency key ${fault}`,
  });
}

/** The key as the store keeps it. No scope holds a colon, so no two of them have a key in common. */
function storedKey(scope: string | undefined, key: string): string {
  return scope === undefined ? key : `${scope}:${key}`;
}

/**
 * SHA-256 of the body as received: of the captured bytes, not of `req.rawBody`, which every middleware can write. Without one every
 * payload would look the same, so that is an error (500).
 */
export function bodyFingerprint(subject: object): string {
  const bytes = capturedRawBody(subject);
  if (bytes !== undefined && bytes.length > 0) return hash("sha256", bytes, "base64url");
  throw new GuardError<IdempotencyGuardCode>({
    status: 500,
    code: "fingerprint-missing",
    message:
      "idempotencyGuard found no captured body to tell one payload from another: mount rawBody() or the signature guard " +
      "before it, give your body parser verify: captureRawBody, or give the option fingerprint",
  });
}

/** What the option says, to be awaited and checked; rejects with a GuardError (503) when it is too late. No key is claimed by then. */
function fingerprintInTime(
  answer: Awaitable<string>,
  { storeTimeoutMs, retryAfterSeconds }: Pick<ResolvedKeyOptions, "storeTimeoutMs" | "retryAfterSeconds">,
): Awaitable<string> {
  const late = (): GuardError<IdempotencyGuardCode> =>
    new GuardError<IdempotencyGuardCode>({
      status: 503,
      code: "fingerprint-unavailable",
      message: `idempotencyGuard: option fingerprint did not answer within ${storeTimeoutMs} ms`,
      headers: { "Retry-After": String(retryAfterSeconds) },
    });
  return inTime(answer, storeTimeoutMs, late);
}

const printable = /^[\x20-\x7e]{1,128}$/;

/** The fingerprint as the option returned it; throws a GuardError (500) on what no store promises to keep. */
export function checkFingerprint(fingerprint: unknown): string {
  if (typeof fingerprint === "string" && printable.test(fingerprint)) return fingerprint;
  throw new GuardError<IdempotencyGuardCode>({
    status: 500,
    code: "fingerprint-invalid",
    message: "idempotencyGuard: option fingerprint must return 1 to 128 printable ASCII characters",
  });
}
