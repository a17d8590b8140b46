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

/** Of each contract what needs a server of the file's own, which it stops: the rest runs on one that others use. */
export function testCrashes(
  contracts: Readonly<Record<string, readonly ContractCase[]>>,
  describeOn: (title: string, define: () => void) => unknown,
): void {
  for (const [name, cases] of Object.entries(contracts)) {
    const aboutEngine = cases.filter((each) => each.name.includes("engine is"));
    testContract(`contract on a server that crashes: ${name}`, aboutEngine, describeOn);
  }
}
