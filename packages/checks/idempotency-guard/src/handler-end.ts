import { isGuardError } from "@countersign/core";

/** True for a handler's end by its signal or a lost completeIn(), either of which may cause its throw. */
export function isStop(error: unknown): boolean {
  const causes = [error, error instanceof Error ? error.cause : undefined];
  return causes.some((cause) => isGuardError(cause) && cause.code === "idempotency-lost");
}

/** Resolves after the present callback of the event loop, before any other: Node runs the tick when no microtask is left. */
export async function callbackEnd(): Promise<void> {
  await Promise.resolve();
  await new Promise<void>((resolve) => process.nextTick(resolve));
}
