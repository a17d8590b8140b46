import type { ContractCase } from "@countersign/store-contract";

/** The cases without those that the harness declares as not for it: the runs of this project have no skipped test. */
export function applicable(cases: readonly ContractCase[]): readonly ContractCase[] {
  return cases.filter(({ skipped }) => skipped === undefined);
}
