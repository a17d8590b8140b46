/** Takes the steps of a case in their order, each after the one before it has ended. */
export async function inTurn<T>(items: Iterable<T>, step: (item: T) => Promise<unknown>): Promise<void> {
  for (const item of items) {
    // oxlint-disable-next-line no-await-in-loop -- in turn
    await step(item);
  }
}
