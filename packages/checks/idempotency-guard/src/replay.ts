import { createSecretKey } from "node:crypto";
import { GuardError, OptionError } from "@countersign/core";
import {
  askStore,
  assertFunction,
  comeAgain,
  limitRule,
  option,
  optionError,
  type OptionOwner,
  type OptionTable,
  type ReadOptions,
} from "@countersign/core/internal";
import type {
  AnswerStore,
  Awaitable,
  IdempotencyKeys,
  TransactionAnswerStore,
  TransactionStores,
} from "@countersign/idempotency";
import type { keyOptions } from "@countersign/idempotency/internal";
import {
  fieldName,
  isKeptStatus,
  readRecord,
  writeRecord,
  type AnswerKey,
  type AnswerPlace,
  type KeptAnswer,
} from "./answer-record.ts";
import type { IdempotencyGuardCode } from "./codes.ts";

/** The option `replay`: how to keep and repeat the first answer. */
export interface ReplayOptions {
  /** Where answers are kept, shared by all processes of the route. */
  readonly answers: AnswerStore;
  /**
   * Who gets the answer of a key: with `"apart"` the callers' keys differ, since the option `key` holds the authenticated caller; with
   * `"shared"` every caller who sends key and payload gets it, whoever made the first request. Required, unless `key` is of an
   * `idempotencyKeyHeader()` with `caller`.
   */
  readonly callers?: "apart" | "shared" | undefined;
  /** The header fields to repeat; never `Set-Cookie` or the connection's. Default Content-Language, Content-Type, Location. */
  readonly headers?: readonly string[] | undefined;
  /** The largest body kept, in bytes or as "100kb", up to one megabyte. A larger answer is not repeated. Default "100kb". */
  readonly limit?: number | string | undefined;
  /** Keys of AES-256-GCM: the first encrypts, each decrypts. Default none: unencrypted. */
  readonly encryptionKeys?: readonly AnswerEncryptionKey[] | undefined;
}

/** {@link ReplayOptions} of a guard whose handler gets the transaction. */
export interface TransactionReplayOptions<Tx> extends ReplayOptions {
  /** On the very `database` of `stores`: an answer commits with its key. */
  readonly answers: TransactionAnswerStore<Tx>;
}

interface AnswerEncryptionKey {
  /** The key's name in records: 1 to 64 visible ASCII characters. */
  readonly id: string;
  /** 32 random bytes in base64. */
  readonly secret: string;
}

type StoreBounds = Pick<ReadOptions<typeof keyOptions.rules>, "storeTimeoutMs" | "retryAfterSeconds">;

// What is held back of an undecided body: a larger one is not whole by then.
const mostBytes = 1_048_576;

// Of one connection, moment or caller's session, or written anew for each answer.
const neverKept: ReadonlySet<string> = new Set([
  "connection",
  "content-length",
  "date",
  "idempotency-replayed",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authentication-info",
  "set-cookie",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

export const replayTable = {
  answers: option.own(readAnswers),
  callers: option.optional(option.oneOf(["apart", "shared"]), "required without caller"),
  headers: option.own(readHeaders, '["Content-Language", "Content-Type", "Location"]'),
  limit: option.own(readLimit, limitRule().byDefault),
  encryptionKeys: option.own(readKeys, "none"),
} satisfies OptionTable<ReplayOptions, unknown>;

export type ResolvedReplay = ReadOptions<typeof replayTable>;

export interface GivenAnswer {
  readonly status: number;
  /** Names and values alternating. */
  readonly rawHeaders: readonly string[];
  /** Undefined when over the limit, or not ended in time. */
  readonly body: Buffer | undefined;
}

interface Owner extends AnswerPlace {
  readonly req: object;
}

type ReplayedKeys = Pick<IdempotencyKeys, "read" | "failure" | "alarm">;

/** Keeps the answers of keys that are about to be done, and finds them again (I15). */
export class Replay {
  readonly limitBytes: number;
  readonly #options: ResolvedReplay & {
    readonly storeTimeoutMs: number;
    readonly retryAfterSeconds: number;
  };
  readonly #keys: ReplayedKeys;

  constructor(
    options: ResolvedReplay,
    { storeTimeoutMs, retryAfterSeconds }: StoreBounds,
    keys: ReplayedKeys,
  ) {
    this.#options = { ...options, storeTimeoutMs, retryAfterSeconds };
    this.limitBytes = options.limit;
    this.#keys = keys;
  }

  /** Does not reject: after the effect the key becomes done even without an answer. */
  async keep(owner: Owner, answer: GivenAnswer | undefined): Promise<void> {
    try {
      const record = this.recordOf(owner, answer);
      await this.#ask("keep-answer", () => this.#options.answers.keep(owner.token, record));
    } catch (error) {
      this.notKept(owner, error);
    }
  }

  /** Keeps a record in the transaction of its key, before COMMIT. Fails with the store's error. */
  keepIn(tx: unknown, { token }: AnswerPlace, record: Buffer): Awaitable<void> {
    const { answers }: { answers: AnswerStore<unknown> } = this.#options;
    return this.#ask("keep-answer", () => {
      if (answers.keepIn === undefined) throw new TypeError("the store of answers has no keepIn");
      return answers.keepIn(tx, token, record);
    });
  }

  /** Throws, with the reason, for an answer that cannot be given again. */
  recordOf(owner: AnswerPlace, answer: GivenAnswer | undefined): Buffer {
    const fault = whyNotKept(answer, this.limitBytes);
    if (answer?.body === undefined || fault !== undefined) throw new Error(fault);
    const { status, body } = answer;
    const kept: KeptAnswer = { status, headers: this.#chosen(answer.rawHeaders), body };
    return writeRecord(kept, owner, this.#options.encryptionKeys);
  }

  /** Says that a key is done without its answer. */
  notKept({ key, req }: Owner, error: unknown): void {
    const message = "is done without an answer that could be given again";
    this.#keys.failure({ code: "answer-not-kept", key, message, req, error });
  }

  /** The sound answer of the attempt that ended the key. Throws (503) when a store is silent: a bare status would be the last word. */
  async find(key: string, req: object): Promise<KeptAnswer | undefined> {
    const { answers, encryptionKeys } = this.#options;
    let token: string;
    let record: Uint8Array | undefined;
    try {
      const done = await this.#keys.read(key);
      if (done?.state !== "done") return undefined;
      ({ token } = done);
      record = await this.#ask("find-answer", () => answers.find(done.token));
    } catch (cause) {
      throw this.#unavailable(cause);
    }
    if (record === undefined) return undefined;
    try {
      const answer = readRecord(record, { key, token }, encryptionKeys);
      // By today's list: a field removed from it is not repeated.
      return { ...answer, headers: answer.headers.filter(([name]) => this.#options.headers.has(name)) };
    } catch (error) {
      const message = "has an answer that cannot be read, and is answered without it";
      this.#keys.alarm({ code: "answer-unreadable", key, message, req, error });
      return undefined;
    }
  }

  #ask<T>(step: string, call: () => Awaitable<T>): Awaitable<T> {
    const { answers, storeTimeoutMs: timeoutMs } = this.#options;
    return askStore({ engine: answers.engine, step, timeoutMs, name: "the store of answers" }, call);
  }

  #chosen(rawHeaders: readonly string[]): KeptAnswer["headers"] {
    return rawHeaders.flatMap((name, index) => {
      const lower = name.toLowerCase();
      return index % 2 === 0 && this.#options.headers.has(lower)
        ? [[lower, rawHeaders[index + 1] ?? ""] as const]
        : [];
    });
  }

  #unavailable(cause: unknown): GuardError<IdempotencyGuardCode> {
    const { retryAfterSeconds } = this.#options;
    const message = "the key is done, and its answer could not be read";
    return new GuardError<IdempotencyGuardCode>({
      ...comeAgain("answer-unavailable", message, retryAfterSeconds),
      cause,
    });
  }
}

/** Throws an OptionError unless the answers commit in the transactions of the stores. */
export function assertAnswersInTransaction(
  owner: OptionOwner,
  replay: ResolvedReplay | undefined,
  { transactions }: Pick<TransactionStores<never>, "transactions">,
): void {
  if (replay === undefined) return;
  const { database } = transactions;
  const isSame = database !== undefined && replay.answers.database === database;
  if (isSame && typeof replay.answers.keepIn === "function") return;
  throw new OptionError(owner, {
    option: "replay.answers",
    what:
      "must be on the very database of stores, so that an answer commits with its key: give " +
      "createAnswers({ database }) the same object database as the stores",
  });
}

function whyNotKept(answer: GivenAnswer | undefined, limitBytes: number): string | undefined {
  if (answer === undefined) return "it was not seen as a whole";
  if (!isKeptStatus(answer.status)) return `its status is ${answer.status}`;
  if (answer.body === undefined || answer.body.length > limitBytes)
    return "its body is larger than the limit, or did not end in time";
  // Its bytes mean nothing without that field, and the retry may not accept the coding.
  const isCoded = answer.rawHeaders.some(
    (name, index) => index % 2 === 0 && name.toLowerCase() === "content-encoding",
  );
  return isCoded ? "it has a content coding: compress in front of the guard" : undefined;
}

function readAnswers(value: unknown, owner: OptionOwner, name: string): AnswerStore {
  if (typeof value !== "object" || value === null) {
    throw optionError(owner, name, "an AnswerStore, for example memoryAnswerStore()", value);
  }
  for (const method of ["keep", "find", "prune", "close"]) {
    assertFunction(owner, `${name}.${method}`, Reflect.get(value, method));
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it has the methods; what they answer is checked on use
  return value as AnswerStore;
}

function readHeaders(
  value: unknown = ["Content-Language", "Content-Type", "Location"],
  owner: OptionOwner,
  name: string,
): ReadonlySet<string> {
  if (!Array.isArray(value)) throw optionError(owner, name, "an array of names of header fields", value);
  return new Set(
    Array.from(value, (field: unknown, index) => {
      const place = `${name}[${index}]`;
      if (typeof field !== "string" || !fieldName.test(field)) {
        throw optionError(owner, place, "the name of a header field", field);
      }
      const lower = field.toLowerCase();
      if (!neverKept.has(lower)) return lower;
      throw new OptionError(owner, {
        option: place,
        what: `is ${field}, which no answer is given again with`,
      });
    }),
  );
}

function readLimit(value: unknown, owner: OptionOwner, name: string): number {
  const limitBytes = limitRule().read(value, owner, name);
  if (limitBytes <= mostBytes) return limitBytes;
  throw optionError(owner, name, 'at most "1mb"', value);
}

const keyId = /^[!-~]{1,64}$/;
// 32 bytes: the last character has two unused bits.
const keyText = /^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$/;

function readKeys(value: unknown, owner: OptionOwner, name: string): readonly AnswerKey[] {
  if (value === undefined) return [];
  if (!Array.isArray(value) || value.length === 0) {
    throw optionError(owner, name, "a non-empty array of { id, secret }", value);
  }
  const keys = Array.from(value, (given: unknown, index): AnswerKey => {
    const place = `${name}[${index}]`;
    const entry: { id?: unknown; secret?: unknown } = Object(given);
    const { id, secret } = entry;
    if (typeof id !== "string" || !keyId.test(id)) {
      throw optionError(owner, `${place}.id`, "1 to 64 visible ASCII characters", id);
    }
    const bytes =
      typeof secret === "string" && keyText.test(secret) ? Buffer.from(secret, "base64") : undefined;
    if (bytes === undefined || bytes.every((byte) => byte === bytes[0])) {
      throw optionError(owner, `${place}.secret`, "32 random bytes in base64, not all equal", secret);
    }
    return { id, key: createSecretKey(bytes) };
  });
  if (new Set(keys.map(({ id }) => id)).size < keys.length) {
    throw new OptionError(owner, { option: name, what: "has one id twice" });
  }
  return keys;
}
