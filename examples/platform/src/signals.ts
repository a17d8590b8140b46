// A Ctrl-C under npm arrives twice, from the terminal and from npm.
const doubledWithinMs = 1_000;

/**
 * Calls `end` at the first SIGTERM or SIGINT, or when the parent that opened an IPC channel is gone. A later signal ends the
 * process at once with exit code 1.
 */
export function onceSignalled(end: (signal: string) => void): void {
  let signalledAt: number | undefined;
  const onSignal = (signal: string): void => {
    if (signalledAt === undefined) {
      signalledAt = performance.now();
      end(signal);
    } else if (performance.now() - signalledAt > doubledWithinMs) {
      process.exit(1);
    }
  };
  process.on("SIGTERM", onSignal);
  process.on("SIGINT", onSignal);
  process.on("disconnect", () => onSignal("disconnect"));
}
