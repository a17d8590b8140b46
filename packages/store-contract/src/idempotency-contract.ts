import type { Awaitable } from "@countersign/idempotency-guard";
import { claimCases } from "./cases/claim-cases.ts";
import { type CaseDefinition, type Facilities, bindContract, commonFacilities } from "./contract.ts";
import type { ContractCase, ContractOptions, IdempotencyStoreHarness } from "./harness.ts";

/** A case of the idempotency contract; it passes transactions on without looking into them. */
export type IdempotencyCase = CaseDefinition<IdempotencyStoreHarness<unknown>>;

const definitions: readonly IdempotencyCase[] = [...claimCases];

/**
 * The rules of an idempotency store, each as a case for a test runner. `makeStore` is called for each case and returns an empty
 * store with its harness. Throws a TypeError on arguments of another kind.
 */
export function idempotencyStoreContract<Tx>(
  makeStore: () => Awaitable<IdempotencyStoreHarness<Tx>>,
  options: ContractOptions = {},
): readonly ContractCase[] {
  const contract = { factory: "idempotencyStoreContract", definitions, facilitiesOf };
  return bindContract(contract, makeStore, options);
}

function facilitiesOf(harness: IdempotencyStoreHarness<unknown>): Facilities {
  return {
    ...commonFacilities(harness),
    transaction: harness.transaction !== undefined && harness.store.completeIn !== undefined,
    retention: harness.store.retentionMs !== undefined,
    list: harness.store.list !== undefined,
    prune: true,
    close: true,
  };
}
