import { textOf, type DatabaseRow } from "../sql.ts";
import type { DeliveryState, StopKind } from "./types.ts";

/** All states, in the order of the documentation. */
export const deliveryStates: readonly DeliveryState[] = ["pending", "delivered", "failed"];

/** The column `state` of a row. */
export function deliveryStateOf(row: DatabaseRow): DeliveryState {
  const text = textOf(row, "state");
  const state = deliveryStates.find((known) => known === text);
  if (state === undefined) throw new Error("the database returned an unknown state of a delivery");
  return state;
}

/** The kind of a row of `webhook_stops`; undefined without one. */
export function stopKindOf(text: unknown): StopKind | undefined {
  return text === "paused" || text === "dropped" ? text : undefined;
}
