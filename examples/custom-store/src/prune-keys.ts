import { type PrunedBatch, prunedKeys } from "@countersign/idempotency/store";
import { change, rows } from "./engine.ts";
import type { StoreParts } from "./options.ts";

/** How many rows one step removes: for so long it keeps others waiting. */
export const pruneBatchSize = 500;

/** Removes rows of done keys past their retention and of free ones, and raises the floor to their fences in the same commit. */
export async function removeBatch({ engine, names, clock, time }: StoreParts): Promise<PrunedBatch> {
  return engine.transaction(async (connection) => {
    const remove = `DELETE FROM ${names.keys} WHERE state IN ('free', 'done') AND until_us <= ${clock}
ORDER BY until_us LIMIT ${pruneBatchSize} RETURNING state, fence`;
    const removed = await rows(connection, remove, time());
    if (removed.length > 0) {
      const highest = Math.max(...removed.map((row) => Number(row["fence"])));
      await change(connection, `UPDATE ${names.floor} SET fence = GREATEST(fence, :highest)`, { highest });
    }
    return prunedKeys(removed);
  });
}
