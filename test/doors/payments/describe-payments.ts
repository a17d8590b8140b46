import { describe, expect, test } from "@jest/globals";
import type { Door } from "../scene.ts";
import { engines } from "./engines.ts";
import { play, type PaymentRow } from "./stage.ts";

/** Every row of the state table on each engine, at each of the doors. */
export function describePayments(rows: readonly PaymentRow[], doors: readonly Door[]): void {
  for (const door of doors) {
    describe.each(engines)(`payments at ${door.name}, on $name`, (engine) => {
      const its = rows.filter(
        ({ on = [engine.name], not = [] }) => on.includes(engine.name) && !not.includes(door.name),
      );
      test.each(its)("$title", async (row) => {
        const { seen, demanded, last } = await play(door, engine, row);
        expect(seen).toEqual(demanded);
        if (row.body !== undefined) expect(last?.body).toBe(row.body);
      });
    });
  }
}
