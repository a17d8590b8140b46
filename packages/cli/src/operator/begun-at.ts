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

const units: readonly (readonly [unit: string, ms: number])[] = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["min", 60_000],
  ["s", 1000],
];

/** A length of time, rounded down to its largest unit that it has twice. */
export function duration(ms: number): string {
  const [unit, unitMs] = units.find(([, size]) => ms >= 2 * size) ?? ["ms", 1];
  return `${Math.floor(ms / unitMs)} ${unit}`;
}

/** A time and how long ago it was, in UTC and to the second. */
export function timeAgo(ms: number, nowMs: number): string {
  const time = new Date(ms)
    .toISOString()
    .replace("T", " ")
    .replace(/\.\d+Z$/, "Z");
  return nowMs - ms < 2000 ? `${time}, just now` : `${time}, ${duration(nowMs - ms)} ago`;
}
