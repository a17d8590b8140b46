const signals = ["SIGTERM", "SIGINT"] as const;

/**
 * Resolves at the first SIGTERM or SIGINT. Further ones change nothing, because a Ctrl-C under npm arrives twice: the caller has
 * to end within a bounded time.
 */
export function untilSignalled(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of signals) process.on(signal, () => resolve());
  });
}
