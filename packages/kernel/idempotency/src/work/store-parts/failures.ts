import type { TaskRecord } from "../work-store.ts";

const mostKept = 20;

type Failures = TaskRecord["failures"];

/** Reads the JSON that a row keeps. */
export function keptFailures(json: string): Failures {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- written by failuresAfter()
  return JSON.parse(json) as Failures;
}

/** The JSON that a row keeps after another failure. */
export function failuresAfter(json: string, failure: Failures[number]): string {
  return JSON.stringify([...keptFailures(json), failure].slice(-mostKept));
}
