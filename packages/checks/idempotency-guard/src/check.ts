import { hash, randomUUID } from "node:crypto";
import { types } from "node:util";
import {
  capturedRawBody,
  createRequestFact,
  GuardError,
  guardChannel,
  identifierFault,
  inTime,
  markKeyClaimed,
  noteVerdict,
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
import type { KeptAnswer } from "./answer-record.ts";
import type { IdempotencyGuardCode } from "./codes.ts";
import { OwnedRun, type Attempt, type GuardState } from "./run.ts";
import { factory, resolveOptions, type IdempotencyGuardOptions } from "./options.ts";
import { alreadyProcessed, clientLeft, fingerprintMissing, held, inFlight, reused } from "./refusals.ts";
import { Replay } from "./replay.ts";

/** Does `work` with a signal that aborts when the client leaves meanwhile, or has left. A door's way to know. */
export type WhileConnected = <T>(work: (left: AbortSignal) => Promise<T>) => Promise<T>;

/** What becomes of a request that came with a key, or without one. */
export type Admission =
  /** It owns its key: start the handler by it, keep the answer back, settle it by its status, let out what settle() says. */
  | { readonly run: OwnedRun }
  /** Its key is done, and this is the answer: no handler. */
  | { readonly answer: KeptAnswer }
  /** The guard has nothing to do with it, by the options `methods` and `required`. */
  | { readonly passes: true };

/** Owns idempotency keys on behalf of requests. `Native` is the request of a framework. Made by {@link keyOwner}. */
export interface KeyOwner<Native> {
  /**
   * Claims the key of a request, or waits for its first attempt. Rejects with a GuardError: 409 for a key that is done, 503 for one
   * that runs or is held, or when the store does not tell, 400 for what is no key; by the options, another status, or an answer.
   */
  admit(this: void, native: Native, whileConnected: WhileConnected): Promise<Admission>;
  /** {@link KeyOwner.admit} where a request owns its key or is refused: without `methods`, `required`, `doneStatus` and `replay`. */
  own(this: void, native: Native, whileConnected: WhileConnected): Promise<OwnedRun>;
  /**
   * For the end of the process, when the server takes no connection any more: claims no key from here on (503, `draining`), and
   * waits until what is under way is settled and recorded. Resolves to what is left after `timeoutMs`.
   */
  drain(this: void, options?: DrainOptions): Promise<DrainReport>;
}

const maxKeyLength = 512;

const admissions: RequestFact<Admission> = createRequestFact();

/** What became of this very request at the guard. */
export function admissionOf(subject: object): Admission | undefined {
  return admissions.get(subject);
}

/** The run that owns the key of this very request. */
export function runOf(subject: object): OwnedRun | undefined {
  const admission = admissions.get(subject);
  return admission !== undefined && "run" in admission ? admission.run : undefined;
}

/** Throws an OptionError on a bad option; `owner` is who it says has it. */
export function keyOwner<Native extends object>(
  options: IdempotencyGuardOptions<Native>,
  owner: OptionOwner = factory,
): KeyOwner<Native> {
  const resolved = resolveOptions(options, owner);
  const waiters = new Waiters(resolved);
  const keys = new IdempotencyKeys({ ...resolved, onSettled: (key) => waiters.wake(key) });
  const replay = resolved.replay && new Replay(resolved.replay, resolved, keys);
  const state: GuardState = { options: resolved, keys, waiters, replay };
  const { fingerprint: fingerprintOf = bodyFingerprint } = resolved;
  const admission = async (native: Native, whileConnected: WhileConnected): Promise<Admission> => {
    if (!isGuarded(native, resolved.methods)) return { passes: true };
    const given = resolved.key(native);
    if (given === undefined && !resolved.required) return { passes: true };
    const key = checkIdempotencyKey(given, resolved.scope);
    const fingerprint = checkFingerprint(await fingerprintInTime(fingerprintOf(native), resolved));
    const attempt: Attempt = { key, fingerprint, token: randomUUID(), req: native };
    if (guardChannel.hasSubscribers) noteVerdict(native, { idempotencyKey: key });
    let claimed: OwnedKey | KeptAnswer;
    try {
      claimed = await claim(state, attempt, whileConnected);
    } catch (error) {
      noteVerdict(native, { idempotencyKey: key });
      throw error;
    }
    if ("body" in claimed) return { answer: claimed };
    markKeyClaimed(native);
    return { run: new OwnedRun(state, attempt, claimed) };
  };
  const admit: KeyOwner<Native>["admit"] = async (native, whileConnected) => {
    if (runOf(native) !== undefined) throw claimedTwice();
    const admitted = await admission(native, whileConnected);
    admissions.set(native, admitted);
    return admitted;
  };
  return {
    admit,
    async own(native, whileConnected) {
      const admitted = await admit(native, whileConnected);
      if ("run" in admitted) return admitted.run;
      throw new TypeError(`${factory}: own() cannot be used with methods, required, doneStatus and replay`);
    },
    drain: (drainOptions) => keys.drain(drainOptions),
  };
}

function isGuarded(native: object, methods: ReadonlySet<string> | undefined): boolean {
  if (methods === undefined) return true;
  const method: unknown = Reflect.get(native, "method");
  if (typeof method === "string") return methods.has(method);
  throw new TypeError(`${factory}: option methods: the request has no method`);
}

/** Claims the key and goes by the answer: again when it was freed for one who waited. */
async function claim(
  state: GuardState,
  attempt: Attempt,
  whileConnected: WhileConnected,
): Promise<OwnedKey | KeptAnswer> {
  const { keys, waiters, options } = state;
  let waitUntilMs: number | undefined;
  for (;;) {
    // oxlint-disable-next-line no-await-in-loop -- one claim after the other, each behind a wait
    const result = await keys.acquire(attempt);
    if (result.status === "acquired") return result;
    if (result.status === "done") return answerOfDone(state, attempt, result.fingerprint);
    if (result.status === "held") throw held(state, attempt, result);
    waitUntilMs ??= performance.now() + options.waitMs;
    const leftMs = waitUntilMs - performance.now();
    // oxlint-disable-next-line no-await-in-loop -- see above
    const outcome = await whileConnected(async (left) => waiters.wait(attempt.key, left, leftMs));
    if (outcome === "client-left") throw clientLeft();
    if (outcome === "timeout") throw inFlight(state);
    if (outcome === "claim") continue;
    if (outcome.state === "held") throw held(state, attempt, outcome);
    return answerOfDone(state, attempt, outcome.fingerprint);
  }
}

/** What a key is answered with that is done: its first answer, or what the options say. Throws the refusal of one that is reused. */
async function answerOfDone(state: GuardState, attempt: Attempt, fingerprint: string): Promise<KeptAnswer> {
  if (fingerprint !== attempt.fingerprint) throw reused(state, attempt);
  const kept = await state.replay?.find(attempt.key, attempt.req);
  if (kept !== undefined) return { ...kept, headers: [...kept.headers, ["idempotency-replayed", "true"]] };
  const { doneStatus } = state.options;
  if (doneStatus === 409) throw alreadyProcessed();
  return { status: doneStatus, headers: [], body: Buffer.alloc(0) };
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

/**
 * SHA-256 of the body as received: of the captured bytes, not of `req.rawBody`, which every middleware can write. Without one every
 * payload would look the same, so that is an error (500).
 */
export function bodyFingerprint(subject: object): string {
  const bytes = capturedRawBody(subject);
  if (bytes !== undefined && bytes.length > 0) return hash("sha256", bytes, "base64url");
  throw fingerprintMissing();
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
