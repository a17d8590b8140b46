/**
 * Settles as `work` does, or rejects with what `late()` returns after `timeoutMs` milliseconds.
 * `work` itself goes on: whoever owns the effect must expect that it happens later.
 */
export function withDeadline<T>(work: Promise<T>, timeoutMs: number, late: () => Error): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const timer = setTimeout(() => reject(late()), timeoutMs);
    // oxlint-disable-next-line promise/prefer-await-to-then -- a race of a promise against a timer
    work.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

/** Whether a store or a handler answered with a promise; synchronous ones cost no turn of the event loop. */
export function isPromiseLike<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  // `await` takes a function with a `then` for a promise too.
  if ((typeof value !== "object" && typeof value !== "function") || value === null) return false;
  return "then" in value && typeof value.then === "function";
}
