import { describe, expect, test } from "@jest/globals";
import { run } from "./run.ts";
import type { Door } from "./scene.ts";
import { table } from "./table.ts";

/** Every row of the table at each of the doors. */
export function describeDoors(doors: readonly Door[]): void {
  describe.each(doors)("the door $name", (door) => {
    test.each(table)("$title", async (row) => {
      const { seen, demanded } = await run(door, row);
      expect(seen).toEqual(demanded);
    });
  });
}
