import { describe, expect, test } from "@jest/globals";
import { allowWarnings } from "../support/runs/expect-warning.ts";
import type { Row } from "./row.ts";
import { run } from "./run.ts";
import type { Door } from "./scene.ts";
import { table } from "./table.ts";

/** Every row of the table at each of the doors. */
export function describeDoors(doors: readonly Door[]): void {
  // The rows assert answers and keys. Doors without a subscriber warn of some of them too.
  const warnings =
    /^\[(?:forwarded-for-ignored|completion-delayed|handler-answered-409|commit-not-confirmed)\]/;
  describeRows(table, doors, warnings);
}

/** `warnings`: what may be written meanwhile. */
export function describeRows(rows: readonly Row[], doors: readonly Door[], warnings?: RegExp): void {
  describe.each(doors)("the door $name", (door) => {
    test.each(rows)("$title", async (row) => {
      if (warnings !== undefined) allowWarnings(warnings);
      const { seen, demanded } = await run(door, row);
      expect(seen).toEqual(demanded);
    });
  });
}
