import { type ContractCase, defineCases } from "@countersign/store-contract";
import { describe, test } from "@jest/globals";

/** Defines the cases without those that the harness declares as not for it: the runs of this project have no skipped test. */
export function testContract(
  title: string,
  cases: readonly ContractCase[],
  describeOn: (title: string, define: () => void) => unknown = describe,
): void {
  const applicable = cases.filter(({ skipped }) => skipped === undefined);
  defineCases(applicable, { describe: describeOn, test, title });
}
