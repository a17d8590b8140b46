import { beforeEach, describe, expect, test } from "@jest/globals";
import { allowWarnings } from "../../support/runs/expect-warning.ts";
import type { Adapter } from "../scene.ts";
import { engines, type EngineName } from "./engines.ts";
import { play, type PaymentRow } from "./stage.ts";

const everywhere: readonly EngineName[] = ["postgresql", "sqlite", "mariadb"];

/** Every row of the state table on each of the engines, at each of the adapters. */
export function describePayments(
  rows: readonly PaymentRow[],
  adapters: readonly Adapter[],
  names: readonly EngineName[] = everywhere,
): void {
  for (const adapter of adapters) {
    for (const engine of engines.filter(({ name }) => names.includes(name))) {
      describe(`payments at ${adapter.name}, on ${engine.name}`, () => {
        const its = rows.filter(
          ({ on = [engine.name], not = [] }) => on.includes(engine.name) && !not.includes(adapter.name),
        );
        // The rows assert answers, keys and payments. Adapters without a subscriber warn of one of them too.
        beforeEach(() => {
          allowWarnings(
            /^\[handler-answered-409\] .* has a handler whose refusal says "paid", and was rolled back$/,
          );
        });

        test.each(its)("$title", async (row) => {
          const { seen, demanded, last } = await play(adapter, engine, row);
          expect(seen).toEqual(demanded);
          if (row.body !== undefined) expect(last?.body).toBe(row.body);
        });
      });
    }
  }
}
