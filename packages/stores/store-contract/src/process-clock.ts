import type { Awaitable } from "@countersign/idempotency";

/** Runs `work` with a `Date` that is wrong by `shiftMs`. Timers run as before. */
export async function withProcessClock<T>(shiftMs: number, work: () => Awaitable<T>): Promise<T> {
  const RealDate = globalThis.Date;
  const now = (): number => RealDate.now() + shiftMs;
  globalThis.Date = new Proxy(RealDate, {
    construct(target, parameters, newTarget) {
      const date: object = Reflect.construct(
        target,
        parameters.length === 0 ? [now()] : parameters,
        newTarget,
      );
      return date;
    },
    get: (target, property, receiver): unknown =>
      property === "now" ? now : Reflect.get(target, property, receiver),
  });
  try {
    return await work();
  } finally {
    globalThis.Date = RealDate;
  }
}
