import type { Awaitable } from "@countersign/idempotency";
import { raceCases } from "./cases/race-cases.ts";
import { orderCases } from "./cases/order-cases.ts";
import { clockCases } from "./cases/clock-cases.ts";
import { fenceCases } from "./cases/fence-cases.ts";
import { hostileTextCases } from "./cases/hostile-text-cases.ts";
import { engineCases } from "./cases/engine-cases.ts";
import { transactionCases } from "./cases/transaction-cases.ts";
import { listCases } from "./cases/list-cases.ts";
import { type IdempotencyCase, type Facilities, bindContract, commonFacilities } from "./contract.ts";
import { modelCases } from "./cases/model-cases.ts";
import type { ContractCase, IdempotencyContractOptions, IdempotencyStoreHarness } from "./harness.ts";

const definitions: readonly IdempotencyCase[] = [
  ...raceCases,
  ...orderCases,
  ...clockCases,
  ...fenceCases,
  ...hostileTextCases,
  ...engineCases,
  ...transactionCases,
  ...listCases,
  ...modelCases,
];

/**
 * The rules of an idempotency store, each as a case for a test runner. `makeStore` is called for each case and returns an empty
 * store with its harness. Throws a TypeError on arguments of another kind.
 */
export function idempotencyStoreContract<Tx>(
  makeStore: () => Awaitable<IdempotencyStoreHarness<Tx>>,
  options: IdempotencyContractOptions = {},
): readonly ContractCase[] {
  const known = ["without", "seed", "histories"] as const;
  const contract = { factory: "idempotencyStoreContract", options: known, definitions, facilitiesOf };
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
