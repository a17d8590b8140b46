import type { DeliveryOptions } from "./types.ts";

/** Delivery options that are complete; times are those of the clock, already divided by the speed. */
export interface ResolvedDeliveryOptions {
  readonly batchMs: number;
  readonly maxEventsPerWebhook: number;
  readonly concurrency: number;
  readonly initialDelayMs: number;
  readonly maxDelayMs: number;
  readonly retryForMs: number;
  readonly timeoutMs: number;
  readonly stopWaitMs: number;
  readonly duplicate: number;
  readonly reorder: number;
  readonly twiceAtOnce: boolean;
  readonly dropConnection: number;
  readonly random: () => number;
}

interface Bounds {
  readonly min: number;
  readonly max: number;
  readonly fallback: number;
}

const maxTimerMs = 2_147_483_647;
const maxPeriodMs = 365 * 86_400_000;

const integers = {
  batchMs: { min: 0, max: maxPeriodMs, fallback: 0 },
  maxEventsPerWebhook: { min: 1, max: 10_000, fallback: 100 },
  concurrency: { min: 1, max: 1000, fallback: 4 },
  initialDelayMs: { min: 1, max: maxPeriodMs, fallback: 1000 },
  maxDelayMs: { min: 1, max: maxPeriodMs, fallback: 3_600_000 },
  retryForMs: { min: 0, max: maxPeriodMs, fallback: 86_400_000 },
  timeoutMs: { min: 1, max: maxTimerMs, fallback: 30_000 },
  stopWaitMs: { min: 0, max: maxTimerMs, fallback: 5000 },
} as const satisfies Partial<Record<keyof DeliveryOptions, Bounds>>;

const known: ReadonlySet<string> = new Set<keyof DeliveryOptions>([
  ...(["batchMs", "maxEventsPerWebhook", "concurrency", "initialDelayMs", "maxDelayMs"] as const),
  ...(["retryForMs", "timeoutMs", "stopWaitMs"] as const),
  ...(["duplicate", "reorder", "twiceAtOnce", "dropConnection", "random"] as const),
]);

/** Fills in defaults and divides by `speed`. Throws a TypeError on an option that cannot be used. */
export function resolveDeliveryOptions(options: DeliveryOptions, speed: number): ResolvedDeliveryOptions {
  const unknown = Object.keys(options).find((key) => !known.has(key));
  if (unknown !== undefined) throw new TypeError(`createDeliveryService: unknown option ${unknown}`);
  if (!(Number.isFinite(speed) && speed > 0)) throw optionError("speed", "a number above 0", speed);
  const initialDelayMs = integer(options, "initialDelayMs");
  const maxDelayMs = integer(options, "maxDelayMs");
  if (maxDelayMs < initialDelayMs) throw optionError("maxDelayMs", "at least initialDelayMs", maxDelayMs);
  return {
    batchMs: integer(options, "batchMs") / speed,
    initialDelayMs: initialDelayMs / speed,
    maxDelayMs: maxDelayMs / speed,
    retryForMs: integer(options, "retryForMs") / speed,
    maxEventsPerWebhook: integer(options, "maxEventsPerWebhook"),
    concurrency: integer(options, "concurrency"),
    timeoutMs: integer(options, "timeoutMs"),
    stopWaitMs: integer(options, "stopWaitMs"),
    duplicate: chance(options, "duplicate"),
    reorder: chance(options, "reorder"),
    dropConnection: chance(options, "dropConnection"),
    twiceAtOnce: flag(options, "twiceAtOnce"),
    random: randomOf(options),
  };
}

function integer(options: DeliveryOptions, name: keyof typeof integers): number {
  const { min, max, fallback } = integers[name];
  const value = options[name] ?? fallback;
  if (!Number.isInteger(value) || value < min || value > max) {
    throw optionError(name, `an integer from ${min} to ${max}`, value);
  }
  return value;
}

function chance(options: DeliveryOptions, name: "duplicate" | "reorder" | "dropConnection"): number {
  const value = Number(options[name] ?? false);
  if (!(value >= 0 && value <= 1))
    throw optionError(name, "a boolean or a number from 0 to 1", options[name]);
  return value;
}

function flag(options: DeliveryOptions, name: "twiceAtOnce"): boolean {
  const value = options[name] ?? false;
  if (typeof value !== "boolean") throw optionError(name, "a boolean", value);
  return value;
}

function randomOf({ random = Math.random }: DeliveryOptions): () => number {
  if (typeof random !== "function") throw optionError("random", "a function", random);
  return random;
}

function optionError(name: string, expected: string, got: unknown): TypeError {
  return new TypeError(`createDeliveryService: option ${name} must be ${expected}, got ${String(got)}`);
}
