import {
  holderOf,
  option,
  optionError,
  readOptions,
  type OptionRule,
  type OptionTable,
  type ReadOptions,
} from "@countersign/core/internal";

/** `timeoutMs` and `stopWaitMs` are real time; other times are divided by the service's speed. A chance is 0 to 1; true is 1. */
export interface DeliveryOptions {
  /** How long events wait for others to share a webhook with. Default 0: the events of one call are one webhook. */
  readonly batchMs?: number | undefined;
  /** Default 100. */
  readonly maxEventsPerWebhook?: number | undefined;
  /** Requests to one endpoint at the same time, so that a slow one does not hold up the others. Default 4. */
  readonly concurrency?: number | undefined;
  /** Delay after the first failure; each further one doubles it, less up to a quarter at random. Default 1 000. */
  readonly initialDelayMs?: number | undefined;
  /** Default 3 600 000. */
  readonly maxDelayMs?: number | undefined;
  /** No attempt is scheduled later than this after the webhook was formed. Default 86 400 000, the day of the spec. */
  readonly retryForMs?: number | undefined;
  /** For one whole request. Default 30 000. */
  readonly timeoutMs?: number | undefined;
  /** How long `stop` waits for requests under way before it cuts them off. Default 5 000. */
  readonly stopWaitMs?: number | undefined;
  /** Chance that a delivered webhook is sent once more, `initialDelayMs` later. Default 0. */
  readonly duplicate?: boolean | number | undefined;
  /** Chance that a webhook is held back for `initialDelayMs` and the next one, never held back, overtakes it. Default 0. */
  readonly reorder?: boolean | number | undefined;
  /** Send every attempt as two requests at once; one 2xx delivers. Default false. */
  readonly twiceAtOnce?: boolean | undefined;
  /** Chance that the first attempt of a delivery loses its connection when the answer begins. Default 0. */
  readonly dropConnection?: boolean | number | undefined;
  /** From 0 up to 1, for chances and jitter. Default Math.random. */
  readonly random?: (() => number) | undefined;
}

/** Times are those of the clock, already divided by the speed. */
export type ResolvedDeliveryOptions = ReadOptions<typeof table>;

const maxTimerMs = 2_147_483_647;
const maxPeriodMs = 365 * 86_400_000;

const chance: OptionRule<number> = option.own((value = 0, owner, name) => {
  if (typeof value === "boolean" || (typeof value === "number" && value >= 0 && value <= 1))
    return Number(value);
  throw optionError(owner, name, "a boolean or a number from 0 to 1", value);
}, "0");

const table = {
  batchMs: option.integer({ min: 0, max: maxPeriodMs, fallback: 0 }),
  maxEventsPerWebhook: option.integer({ min: 1, max: 10_000, fallback: 100 }),
  concurrency: option.integer({ min: 1, max: 1000, fallback: 4 }),
  initialDelayMs: option.integer({ min: 1, max: maxPeriodMs, fallback: 1000 }),
  maxDelayMs: option.integer({ min: 1, max: maxPeriodMs, fallback: 3_600_000 }),
  retryForMs: option.integer({ min: 0, max: maxPeriodMs, fallback: 86_400_000 }),
  timeoutMs: option.integer({ min: 1, max: maxTimerMs, fallback: 30_000 }),
  stopWaitMs: option.integer({ min: 0, max: maxTimerMs, fallback: 5000 }),
  duplicate: chance,
  reorder: chance,
  twiceAtOnce: option.boolean(false),
  dropConnection: chance,
  random: option.call(Math.random, "Math.random"),
} satisfies OptionTable<DeliveryOptions, unknown>;

/** Fills in defaults and divides by `speed`. Throws an OptionError. */
export function resolveDeliveryOptions(options: DeliveryOptions, speed: number): ResolvedDeliveryOptions {
  const owner = holderOf("startSandbox", "delivery");
  const read = readOptions(owner, table, options);
  const { batchMs, initialDelayMs, maxDelayMs, retryForMs } = read;
  if (maxDelayMs < initialDelayMs)
    throw optionError(owner, "maxDelayMs", "at least initialDelayMs", maxDelayMs);
  return {
    ...read,
    batchMs: batchMs / speed,
    initialDelayMs: initialDelayMs / speed,
    maxDelayMs: maxDelayMs / speed,
    retryForMs: retryForMs / speed,
  };
}
