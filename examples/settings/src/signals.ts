// A Ctrl-C under npm arrives twice, from the terminal and from npm.
const doubledWithinMs = 1_000;
const parentPollMs = 250;

/**
 * Calls `end` once: at the first SIGTERM or SIGINT, or when the parent is gone that opened an IPC channel or is npm. A later
 * signal ends the process at once with exit code 1.
 */
export function onceSignalled(end: (reason: string) => void): void {
  let begunAt: number | undefined;
  const begin = (reason: string): void => {
    if (begunAt !== undefined) return;
    begunAt = performance.now();
    end(reason);
  };
  const onSignal = (signal: string): void => {
    if (begunAt !== undefined && performance.now() - begunAt > doubledWithinMs) process.exit(1);
    begin(signal);
  };
  process.on("SIGTERM", onSignal);
  process.on("SIGINT", onSignal);
  process.on("disconnect", () => begin("the parent is gone"));
  if (process.env["npm_lifecycle_event"] !== undefined) watchParent(() => begin("npm is gone"));
}

// npm starts a script through a shell, and a shell that is ended hands no signal on.
function watchParent(onGone: () => void): void {
  const parent = process.ppid;
  const timer = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(timer);
    onGone();
  }, parentPollMs);
  timer.unref();
}
