// Before the first fence of any store, and how far the clock of an engine may be ahead of this machine's.
const earliestMs = Date.UTC(2020, 0, 1);
const aheadMs = 86_400_000;

/**
 * When the attempt with this fence began, in milliseconds since 1970: a fence is the engine's time in microseconds, or a little more
 * (decision 0014). Undefined for one that cannot be a time, such as the count of a store of one's own.
 */
export function begunAtMs(fence: number, nowMs: number): number | undefined {
  const ms = Math.floor(fence / 1000);
  return ms >= earliestMs && ms <= nowMs + aheadMs ? ms : undefined;
}
