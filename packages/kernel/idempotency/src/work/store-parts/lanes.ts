import type { NewTask } from "../work-store.ts";

// By the first character, so that no entity's name is another task's id.
const [ofEntity, ofTask] = ["e", "t"] as const;

/** Where a task waits for its turn: in its entity's lane, or in one of its own. Tables have a row for each lane with open tasks. */
export function laneOf({ id, entity }: Pick<NewTask, "id" | "entity">): string {
  return entity === undefined ? ofTask + id : ofEntity + entity;
}

export function entityOf(lane: string): string | undefined {
  return lane.startsWith(ofEntity) ? lane.slice(1) : undefined;
}
