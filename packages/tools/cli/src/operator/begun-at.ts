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
