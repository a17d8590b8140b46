import type { Awaitable } from "@countersign/idempotency";
import { claimCases } from "./cases/claim-cases.ts";
import { raceCases } from "./cases/race-cases.ts";
import { orderCases } from "./cases/order-cases.ts";
import { leaseCases } from "./cases/lease-cases.ts";
import { clockCases } from "./cases/clock-cases.ts";
import { heartbeatCases } from "./cases/heartbeat-cases.ts";
import { settleCases } from "./cases/settle-cases.ts";
import { resolveCases } from "./cases/resolve-cases.ts";
import { decisionCases } from "./cases/decision-cases.ts";
import { reopenCases } from "./cases/reopen-cases.ts";
import { fenceCases } from "./cases/fence-cases.ts";
import { retentionCases } from "./cases/retention-cases.ts";
import { hostileTextCases } from "./cases/hostile-text-cases.ts";
import { engineCases } from "./cases/engine-cases.ts";
import { transactionCases } from "./cases/transaction-cases.ts";
import { onceCases } from "./cases/once-cases.ts";
import { listCases } from "./cases/list-cases.ts";
import { type IdempotencyCase, type Facilities, bindContract, commonFacilities } from "./contract.ts";
import type { ContractCase, ContractOptions, IdempotencyStoreHarness } from "./harness.ts";

const definitions: readonly IdempotencyCase[] = [
  ...claimCases,
  ...raceCases,
  ...orderCases,
  ...leaseCases,
  ...clockCases,
  ...heartbeatCases,
  ...settleCases,
  ...resolveCases,
  ...decisionCases,
  ...reopenCases,
  ...fenceCases,
  ...retentionCases,
  ...hostileTextCases,
  ...engineCases,
  ...transactionCases,
  ...onceCases,
  ...listCases,
];

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
