import type { ContractCase } from "@countersign/store-contract";

/** What each case that fails says, by its name. */
export async function failuresOf(cases: readonly ContractCase[]): Promise<Record<string, string>> {
  const failures: Record<string, string> = {};
  for (const { name, run } of cases) {
    await run().catch((error: Error) => {
      failures[name] = error.message;
    });
  }
  return failures;
}
