import process from "node:process";

/** Whether all rows of a `*.table.test.ts` run: `npm run test:long`. `npm test` runs those that show a usual change. */
export const isWhole: boolean = process.env["COUNTERSIGN_TESTS"] === "all";

/** In the run on MySQL of .ci/run: of what each engine has to do, the rows of MariaDB and MySQL alone, since all others run elsewhere. */
export const isOnMysqlAlone: boolean = process.env["COUNTERSIGN_ENGINES"] === "mysql";

/** How many histories of steps the contract of an idempotency store tries: a third in `npm test`, all in `npm run test:long`. */
export const histories: number = isWhole ? 60 : 20;

/** How many cases a property is tried with: a tenth in `npm test`, all in `npm run test:long`. */
export function fuzzRuns(all: number): { readonly numRuns: number } {
  return { numRuns: Math.ceil(all * (isWhole ? 1 : 1 / 10)) };
}
