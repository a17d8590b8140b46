import type { SqliteStores } from "@countersign/store-sql";

/**
 * Shows the dead letters, and runs those of the last day again; resolves to
 * how many.
 */
export async function repeatDeadLetters({
  work,
}: Pick<SqliteStores, "work">): Promise<number> {
  const { tasks } = await work.list({
    queue: "inbox",
    state: "dead",
    limit: 100,
  });
  for (const { id, failures } of tasks)
    console.log(id, failures.at(-1)?.reason);
  return await work.retry("inbox", { deadSinceMs: Date.now() - 86_400_000 });
}
