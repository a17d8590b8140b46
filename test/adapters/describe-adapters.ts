import { describe, expect, test } from "@jest/globals";
import { allowWarnings } from "../support/runs/expect-warning.ts";
import type { Row } from "./row.ts";
import { run } from "./run.ts";
import type { Adapter } from "./scene.ts";
import { table } from "./table.ts";

/** Every row of the table at each of the adapters. */
export function describeAdapters(adapters: readonly Adapter[]): void {
  // The rows assert answers and keys. Adapters without a subscriber warn of some of them too.
  const warnings = /^\[(?:forwarded-for-ignored|completion-delayed|handler-answered-409)\]/;
  describeRows(table, adapters, warnings);
}

/** `warnings`: what may be written meanwhile. */
export function describeRows(rows: readonly Row[], adapters: readonly Adapter[], warnings?: RegExp): void {
  describe.each(adapters)("the adapter $name", (adapter) => {
    test.each(rows)("$title", async (row) => {
      if (warnings !== undefined) allowWarnings(warnings);
      const { seen, demanded } = await run(adapter, row);
      expect(seen).toEqual(demanded);
    });
  });
}
