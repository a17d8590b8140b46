/** Resolves after the present callback of the event loop, before any other: Node runs the tick when no microtask is left. */
export async function callbackEnd(): Promise<void> {
  await Promise.resolve();
  await new Promise<void>((resolve) => process.nextTick(resolve));
}
