/** A growing pause between attempts, spread so that many tasks that failed together do not come back together. */
export interface Backoff {
  readonly baseMs: number;
  readonly maxMs: number;
}

/** The pause after attempt number `attempts` (1 is the first): doubles up to `maxMs`; `random` (0 to 1) takes off up to half. */
export function backoffMs({ baseMs, maxMs }: Backoff, attempts: number, random: number): number {
  const full = Math.min(maxMs, baseMs * 2 ** Math.min(attempts - 1, 30));
  return Math.round(full * (1 - random / 2));
}
