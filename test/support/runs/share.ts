import process from "node:process";

/** Whether all rows of a `*.table.test.ts` run: `npm run test:long`. `npm test` runs those that show a usual change. */
export const isWhole: boolean = process.env["COUNTERSIGN_TESTS"] === "all";

/** How many cases a property is tried with: a tenth in `npm test`, all in `npm run test:long`. */
export function fuzzRuns(all: number): { readonly numRuns: number } {
  return { numRuns: Math.ceil(all * (isWhole ? 1 : 1 / 10)) };
}
