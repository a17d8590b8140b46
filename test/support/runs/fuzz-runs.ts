import process from "node:process";

const share = process.env["COUNTERSIGN_FUZZ"] === "all" ? 1 : 1 / 10;

/** How many cases a property is tried with: a tenth in `npm test`, where a usual change shows, all in `npm run test:long`. */
export function fuzzRuns(all: number): { readonly numRuns: number } {
  return { numRuns: Math.ceil(all * share) };
}
