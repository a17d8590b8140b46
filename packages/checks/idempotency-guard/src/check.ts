import { hash, randomUUID } from "node:crypto";
import { createRequestFact, guardChannel, type RequestFact } from "@countersign/core";
import {
  appAnswers,
  capturedRawBody,
  identifierFault,
  inTime,
  keyClaims,
  verdicts,
  type OptionOwner,
} from "@countersign/core/internal";
import {
  IdempotencyKeys,
  type Awaitable,
  type DrainOptions,
  type DrainReport,
  type OwnedKey,
} from "@countersign/idempotency";
import { Waiters } from "@countersign/idempotency/internal";
import type { KeptAnswer } from "./answer-record.ts";
import { OwnedRun, type Attempt, type DoneAnswers, type GuardState } from "./run.ts";
import {
  factoryName,
  resolveOptions,
  resolveOwnerOptions,
  type IdempotencyGuardOptions,
  type KeyOwnerOptions,
  type ResolvedOwnerOptions,
} from "./options.ts";
import {
  asUnclaimed,
  fingerprintLate,
  held,
  inFlight,
  keyInvalid,
  refusal,
  reserves409,
  refuseUncaptured,
  reused,
  type Refusing,
} from "./refusals.ts";
import { Replay, type ResolvedReplay } from "./replay.ts";

/** Does `work` with a signal that aborts when the client leaves, or has left. */
export type WhileConnected = <T>(work: (left: AbortSignal) => Promise<T>) => Promise<T>;

export type Admission =
  /** Owns its key: start the handler by it, hold the answer back, and let out what decide() says. */
  | { readonly run: OwnedRun }
  /** The key is done; this is its answer: no handler. */
  | { readonly answer: KeptAnswer }
  /** Exempt by `methods` or `required`. */
  | { readonly passes: true };

interface KeyClaim {
  /** 1 to 512 characters, less those of `scope`; anything else is 400. */
  readonly key: unknown;
  /** What the handler sees as the caller's key. Default `key`. */
  readonly sentKey?: string | undefined;
  /** Gives 1 to 128 printable ASCII characters. A promise is due within `storeTimeoutMs`. */
  readonly fingerprint: () => Awaitable<string>;
}

/** Owns idempotency keys for requests. Made by {@link keyOwner}. */
export interface KeyOwner {
  /**
   * Claims a key for `native`, or waits for its first attempt. Rejects with a GuardError: 409 for a done key, 503 for one that runs
   * or is held, or a silent store, 400 for an invalid key.
   */
  claim(this: void, native: object, claim: KeyClaim, whileConnected: WhileConnected): Promise<OwnedRun>;
  /** Refuses new claims (503, `draining`), waits until keys are settled, and resolves to what is left. For the process's end. */
  drain(this: void, options?: DrainOptions): Promise<DrainReport>;
}

/** A {@link KeyOwner} that reads key and fingerprint from a framework's requests. Made by {@link keyGuard}. */
export interface KeyGuard<Native> extends Pick<KeyOwner, "drain"> {
  /** As {@link KeyOwner.claim}, except that the options may set another status or an answer. */
  admit(this: void, native: Native, whileConnected: WhileConnected): Promise<Admission>;
  /** Whether only a done key may be answered 409. */
  readonly reserved: boolean;
}

const maxKeyLength = 512;

const runs: RequestFact<OwnedRun> = createRequestFact();

export function runOf(subject: object): OwnedRun | undefined {
  return runs.get(subject);
}

/** Throws an OptionError on a bad option, in the name of `owner`. */
export function keyOwner(options: KeyOwnerOptions, owner: OptionOwner = factoryName): KeyOwner {
  const resolved = resolveOwnerOptions(options, owner);
  const state = createState(resolved, { doneStatus: 409, replay: undefined });
  return {
    async claim(native, attempt, whileConnected) {
      if (runOf(native) !== undefined) throw refusal("idempotency-guard-twice");
      const fingerprint = await readFingerprint(attempt.fingerprint, resolved, true);
      const { key, sentKey: givenKey } = checkIdempotencyKey(attempt.key, resolved.scope);
      const { sentKey = givenKey } = attempt;
      const claimed = await claimKey(state, { req: native, key, sentKey, fingerprint }, whileConnected);
      if (claimed instanceof OwnedRun) return claimed;
      assertSamePayload(state, claimed);
      throw refusal("already-processed");
    },
    drain: (drainOptions) => state.keys.drain(drainOptions),
  };
}

/** Throws an OptionError on a bad option, in the name of `owner`. */
export function keyGuard<Native extends object>(
  options: IdempotencyGuardOptions<Native>,
  owner: OptionOwner = factoryName,
): KeyGuard<Native> {
  const resolved = resolveOptions(options, owner);
  const { scope, methods, required, key: keyOf, fingerprint: fingerprintOf = bodyFingerprint } = resolved;
  const state = createState(resolved, resolved);
  return {
    async admit(native, whileConnected) {
      if (runOf(native) !== undefined) throw refusal("idempotency-guard-twice");
      if (!isGuarded(native, methods)) return { passes: true };
      const given = readKey(() => keyOf(native), state.isReserved);
      if (given === undefined && !required) return { passes: true };
      const { key, sentKey } = checkIdempotencyKey(given, scope);
      const fingerprint = await readFingerprint(() => fingerprintOf(native), resolved, state.isReserved);
      const claimed = await claimKey(state, { req: native, key, sentKey, fingerprint }, whileConnected);
      if (claimed instanceof OwnedRun) return { run: claimed };
      return { answer: await answerOfDone(state, claimed) };
    },
    drain: (drainOptions) => state.keys.drain(drainOptions),
    reserved: state.isReserved,
  };
}

function createState(options: ResolvedOwnerOptions, done: DoneAnswers<ResolvedReplay>): GuardState {
  const waiters = new Waiters(options);
  const keys = new IdempotencyKeys({ ...options, onSettled: (key) => waiters.wake(key) });
  const replay = done.replay && new Replay(done.replay, options, keys);
  const { doneStatus } = done;
  const isReserved = reserves409({ doneStatus, inFlightStatus: options.inFlightStatus });
  return { options, keys, waiters, replay, doneStatus, isReserved };
}

/** A done key: its record's fingerprint tells whether the payload is this attempt's. */
interface DoneKey {
  readonly attempt: Attempt;
  readonly fingerprint: string;
}

/** Claims a request's key; claims again when the key is freed for a waiter. */
async function claimKey(
  state: GuardState,
  { req, key, sentKey, fingerprint }: Omit<Attempt, "token">,
  whileConnected: WhileConnected,
): Promise<OwnedRun | DoneKey> {
  const attempt: Attempt = { key, sentKey, fingerprint, token: randomUUID(), req };
  // For subscribers of a pass; a refusal always shows its key.
  if (guardChannel.hasSubscribers) verdicts.note(req, { idempotencyKey: key });
  let claimed: OwnedKey | DoneKey;
  try {
    claimed = await claimInTurn(state, attempt, whileConnected);
  } catch (error) {
    verdicts.note(req, { idempotencyKey: key });
    throw error;
  }
  if ("attempt" in claimed) {
    verdicts.note(req, { idempotencyKey: key });
    return claimed;
  }
  keyClaims.mark(req);
  const run = new OwnedRun(state, attempt, claimed);
  runs.set(req, run);
  return run;
}

export function isGuarded(native: object, methods: ReadonlySet<string> | undefined): boolean {
  if (methods === undefined) return true;
  const method: unknown = Reflect.get(native, "method");
  if (typeof method === "string") return methods.has(method);
  throw new TypeError(`${factoryName}: option methods: the request has no method`);
}

async function claimInTurn(
  state: GuardState,
  attempt: Attempt,
  whileConnected: WhileConnected,
): Promise<OwnedKey | DoneKey> {
  const { keys, waiters, options } = state;
  let waitUntilMs: number | undefined;
  for (;;) {
    // oxlint-disable-next-line no-await-in-loop -- one claim after the other, each behind a wait
    const result = await keys.acquire(attempt);
    if (result.status === "acquired") return result;
    if (result.status === "done") return { attempt, fingerprint: result.fingerprint };
    if (result.status === "held") throw held(state, attempt, result);
    waitUntilMs ??= performance.now() + options.waitMs;
    const leftMs = waitUntilMs - performance.now();
    // oxlint-disable-next-line no-await-in-loop -- see above
    const outcome = await whileConnected(async (left) => waiters.wait(attempt.key, left, leftMs));
    if (outcome === "client-left") throw refusal("request-aborted");
    if (outcome === "timeout") throw inFlight(state);
    if (outcome === "claim") continue;
    if (outcome.state === "held") throw held(state, attempt, outcome);
    return { attempt, fingerprint: outcome.fingerprint };
  }
}

/** The first answer of a done key, or what the options say. Throws the refusal of a reused key. */
export async function answerOfDone(
  state: Refusing & DoneAnswers<Replay>,
  done: DoneKey,
): Promise<KeptAnswer> {
  assertSamePayload(state, done);
  const { attempt } = done;
  const kept = await state.replay?.find(attempt.key, attempt.req);
  if (kept !== undefined) return { ...kept, headers: [...kept.headers, ["idempotency-replayed", "true"]] };
  const { doneStatus } = state;
  if (doneStatus === 409) throw refusal("already-processed");
  return { status: doneStatus, headers: [], body: Buffer.alloc(0) };
}

function assertSamePayload(state: Refusing, { attempt, fingerprint }: DoneKey): void {
  if (fingerprint !== attempt.fingerprint) throw reused(state, attempt);
}

/** A key that was checked: as the caller sent it, and with its scope as the store has it. */
export interface CheckedKey {
  readonly key: string;
  readonly sentKey: string;
}

/** Throws a GuardError (400) for a key that a store could change or a reader confuse with another. */
export function checkIdempotencyKey(key: unknown, scope?: string): CheckedKey {
  if (key === undefined || key === null || key === "") {
    throw refusal("idempotency-key-missing");
  }
  if (typeof key !== "string") {
    // Every request would be refused: the integration is wrong, not the caller.
    if (appAnswers.isVainPromise(key))
      throw new TypeError("idempotencyGuard: option key must return the key, not a promise");
    throw keyInvalid(`is no string but a ${typeof key}`);
  }
  const stored = storedKey(scope, key);
  const longest = maxKeyLength - (stored.length - key.length);
  if (key.length > longest) throw keyInvalid(`has ${key.length} characters, over ${longest}`);
  // A lone surrogate has no UTF-8 form: an engine may replace it, and two keys become one. NUL ends a text in some.
  const fault = identifierFault(key);
  if (fault !== undefined) throw keyInvalid(fault);
  return { key: stored, sentKey: key };
}

/** No scope holds a colon, so keys of different scopes differ. */
function storedKey(scope: string | undefined, key: string): string {
  return scope === undefined ? key : `${scope}:${key}`;
}

/** What the option `key` gives, unchecked. Where 409 is `reserved` for "paid", one that the option throws becomes 500. */
export function readKey<T>(key: () => T, reserved: boolean): T {
  try {
    return key();
  } catch (error) {
    throw asUnclaimed(error, "key", reserved);
  }
}

/** What the option `fingerprint` gives, checked. Rejects with a GuardError: 503 when late; 500 as {@link readKey}. */
export async function readFingerprint(
  fingerprint: () => Awaitable<string>,
  { storeTimeoutMs, retryAfterSeconds }: Pick<ResolvedOwnerOptions, "storeTimeoutMs" | "retryAfterSeconds">,
  reserved: boolean,
): Promise<string> {
  try {
    const late = (): Error => fingerprintLate(storeTimeoutMs, retryAfterSeconds);
    return checkFingerprint(await inTime(fingerprint(), storeTimeoutMs, late));
  } catch (error) {
    throw asUnclaimed(error, "fingerprint", reserved);
  }
}

/** SHA-256 of the captured bytes, not of `req.rawBody`, which middlewares can write. Throws without (500): payloads would look alike. */
export function bodyFingerprint(subject: object): string {
  const bytes = capturedRawBody(subject);
  if (bytes !== undefined && bytes.length > 0) return hash("sha256", bytes, "base64url");
  return refuseUncaptured(subject);
}

const printable = /^[\x20-\x7e]{1,128}$/;

/** The option's fingerprint; throws a GuardError (500) for one that no store promises to keep. */
export function checkFingerprint(fingerprint: unknown): string {
  if (typeof fingerprint === "string" && printable.test(fingerprint)) return fingerprint;
  throw refusal("fingerprint-invalid");
}
