import type { ResolvedDeliveryOptions } from "./options.ts";

const jitter = 0.25;

/**
 * The delay after so many failures before this one: doubled each time up to `maxDelayMs`, less up to a quarter at random. A
 * quarter keeps each delay below the next as long as they double.
 */
export function backoffMs(
  failuresBefore: number,
  {
    initialDelayMs,
    maxDelayMs,
    random,
  }: Pick<ResolvedDeliveryOptions, "initialDelayMs" | "maxDelayMs" | "random">,
): number {
  const full = Math.min(maxDelayMs, initialDelayMs * 2 ** failuresBefore);
  return full * (1 - jitter * random());
}
