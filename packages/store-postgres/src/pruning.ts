/** How many rows one step removes: their locks are given back in between. */
export const pruneBatchSize = 500;

/** Removes batches until one is not full. Returns how many rows went. */
export async function pruneAll(removeBatch: () => Promise<number>): Promise<number> {
  let removed = 0;
  for (;;) {
    // oxlint-disable-next-line no-await-in-loop -- one batch at a time, so that its locks are given back in between
    const batch = await removeBatch();
    removed += batch;
    if (batch < pruneBatchSize) return removed;
  }
}
