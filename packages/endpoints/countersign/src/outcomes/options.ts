import { OptionError } from "@countersign/core";
import {
  option,
  readOptions,
  type OptionOwner,
  type OptionTable,
  type ReadOptions,
} from "@countersign/core/internal";
import type { TransactionMode } from "@countersign/idempotency";
import { assertCertificatesAreVerified, serviceUrlFault } from "../internal.ts";
import { workerOptions, type WorkerOptions } from "@countersign/idempotency/work/internal";
import type { WorkStores } from "@countersign/idempotency/work";
import { exampleBody, type JsonValue, type Outcome } from "./outcome.ts";

/** What an answer means. `known`: the service has the outcome already. `refused`: for good, for an operator. */
type AnswerMeaning = "sent" | "known" | "retry" | "refused";

/** A payout whose outcome is due and was not reported. */
interface OverdueOutcome {
  readonly idempotencyKey: string;
  /** Since expect(), in milliseconds. */
  readonly sinceMs: number;
}

/** An outcome that will not be sent again by itself. */
interface DeadOutcome {
  readonly outcome: Outcome;
  readonly attempts: number;
  readonly reason: string;
}

type Awaitable<T> = T | Promise<T>;
type Headers = Readonly<Record<string, string>>;

/** What the service takes, and what its answers mean. */
export interface OutcomeSenderOptions {
  /** Where the service takes outcomes: https, or http to a loopback host. Never shown: its query may hold a token. */
  readonly url: string | URL | ((outcome: Outcome) => Awaitable<string | URL>);
  /** Default POST. */
  readonly method?: "POST" | "PUT" | "PATCH" | undefined;
  /** Beside `content-type: application/json`. A function is asked for each attempt: keys rotate. Default none. */
  readonly headers?: Headers | ((outcome: Outcome) => Awaitable<Headers>) | undefined;
  /** Returns the JSON body. Default the sandbox's form, an example: the service's own is agreed with it. */
  readonly body?: ((outcome: Outcome) => JsonValue) | undefined;
  /** What a status means. Default: 2xx `sent`, 409 `known`, 400, 404, 410, 413, 415 and 422 `refused`, all others `retry`. */
  readonly answers?: ((status: number) => AnswerMeaning) | undefined;
  /** Within which the service has to answer, in milliseconds. Default 30,000. */
  readonly timeoutMs?: number | undefined;
}

export interface OutcomesOptions<Tx, Mode extends TransactionMode = TransactionMode>
  extends WorkerOptions, OutcomeSenderOptions {
  /** The app's own database, with a table of work. */
  readonly stores: WorkStores<Tx, Mode>;
  /** Within which the service has to answer, in milliseconds. Default 30,000. */
  readonly timeoutMs?: number | undefined;
  /** How long after expect() an outcome is due, in milliseconds, 1 to 255,600,000 (71 hours). Default: expect() throws. */
  readonly expectWithinMs?: number | undefined;
  /** Called when an outcome is overdue, and again after each `expectWithinMs` until it is reported. Not awaited. */
  readonly onOverdue?: ((overdue: OverdueOutcome) => unknown) | undefined;
  /** Called when an outcome was refused for good, or its attempts are exhausted. Not awaited. */
  readonly onDeadLetter?: ((dead: DeadOutcome) => unknown) | undefined;
  /** The name of the queue: 1 to 55 of `a-z`, `0-9`, `-`. Default `outcomes`. */
  readonly queue?: string | undefined;
  /** The attempts after which an outcome is a dead letter. Default 36: with the other defaults, a day. */
  readonly maxAttempts?: number | undefined;
}

export const factoryName = "createOutcomes";

// With `-expected` behind it, a queue's name.
const readQueue = workerOptions.queueName(55);

const senderTable = {
  url: option.own(readUrl),
  method: option.oneOf(["POST", "PUT", "PATCH"], "POST"),
  headers: option.own(readHeaders, "none"),
  body: option.call<(outcome: Outcome) => JsonValue>(exampleBody, "an example"),
  answers: option.call<(status: number) => AnswerMeaning>(usualMeaning, "see below"),
  timeoutMs: workerOptions.table.timeoutMs,
} satisfies OptionTable<OutcomeSenderOptions, unknown>;

export const table = {
  ...workerOptions.table,
  maxAttempts: option.integer({ min: 1, max: 10_000, fallback: 36 }),
  stores: option.own(workerOptions.readStores<never>),
  ...senderTable,
  // An hour less than a table of work keeps what is done at least: the look has to find it.
  expectWithinMs: option.optional(option.integer({ min: 1, max: 71 * 3_600_000 })),
  onOverdue: option.optional(option.call()),
  onDeadLetter: option.optional(option.call()),
  queue: option.own((value = "outcomes", owner, name) => readQueue(value, owner, name), '"outcomes"'),
} satisfies OptionTable<OutcomesOptions<never>, unknown>;

export type ResolvedOutcomesOptions = ReadOptions<typeof table>;

/** What one request takes; `backoffMs` and `maxBackoffMs` bound when the next may follow. */
export type ResolvedSenderOptions = ReadOptions<typeof senderTable> &
  Pick<ResolvedOutcomesOptions, "backoffMs" | "maxBackoffMs">;

const senderName = "createOutcomeSender";

/** Throws an OptionError, as {@link resolveOptions}. */
export function resolveSenderOptions(options: OutcomeSenderOptions): ResolvedSenderOptions {
  const read = readOptions(senderName, senderTable, options);
  assertCertificatesAreVerified(senderName);
  // The queue has its own pauses.
  return { ...read, backoffMs: 0, maxBackoffMs: 3_600_000 };
}

/** Throws an OptionError, which shows neither the URL nor a header's value. */
export function resolveOptions(options: OutcomesOptions<never>): ResolvedOutcomesOptions {
  const read = readOptions(factoryName, table, options);
  workerOptions.assertFit(factoryName, read);
  assertCertificatesAreVerified(factoryName);
  return read;
}

/** Why a URL is refused, without showing it. */
export function urlFault(url: unknown): string | undefined {
  if (typeof url !== "string" && !(url instanceof URL)) return "must be a string or a URL";
  return serviceUrlFault(String(url), true);
}

const refused: ReadonlySet<number> = new Set([400, 404, 410, 413, 415, 422]);

function usualMeaning(status: number): AnswerMeaning {
  if (status >= 200 && status <= 299) return "sent";
  if (status === 409) return "known";
  return refused.has(status) ? "refused" : "retry";
}

function readUrl(url: unknown, owner: OptionOwner, name: string): OutcomeSenderOptions["url"] {
  const fault = typeof url === "function" ? undefined : urlFault(url);
  if (fault !== undefined) throw new OptionError(owner, { option: name, what: fault });
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what a function returns is checked when it is called
  return url as OutcomeSenderOptions["url"];
}

function readHeaders(
  headers: unknown = {},
  owner: OptionOwner,
  name: string,
): NonNullable<OutcomeSenderOptions["headers"]> {
  if (typeof headers !== "function" && !areHeaders(headers)) {
    const what = "must be an object of header fields that can be sent, or a function that returns one";
    throw new OptionError(owner, { option: name, what });
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- as above
  return headers as NonNullable<OutcomeSenderOptions["headers"]>;
}

/** Whether these are header fields that fetch takes: its own error would show their values. */
export function areHeaders(value: unknown): value is Headers {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  if (!Object.values(value).every((field) => typeof field === "string")) return false;
  try {
    void new Headers({ ...value });
    return true;
  } catch {
    return false;
  }
}
