import { describe, expect, test } from "@jest/globals";
import type { Row } from "./row.ts";
import { run } from "./run.ts";
import type { Door } from "./scene.ts";
import { table } from "./table.ts";

/** Every row of the table at each of the doors. */
export function describeDoors(doors: readonly Door[]): void {
  describeRows(table, doors);
}

export function describeRows(rows: readonly Row[], doors: readonly Door[]): void {
  describe.each(doors)("the door $name", (door) => {
    test.each(rows)("$title", async (row) => {
      const { seen, demanded } = await run(door, row);
      expect(seen).toEqual(demanded);
    });
  });
}
