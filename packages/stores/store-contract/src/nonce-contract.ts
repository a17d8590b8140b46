import type { Awaitable } from "@countersign/idempotency";
import { nonceClaimCases } from "./cases/nonce-claim-cases.ts";
import { nonceRetentionCases } from "./cases/nonce-retention-cases.ts";
import { nonceTextCases } from "./cases/nonce-text-cases.ts";
import { nonceEngineCases } from "./cases/nonce-engine-cases.ts";
import { type NonceCase, type Facilities, bindContract, commonFacilities } from "./contract.ts";
import type { ContractCase, ContractOptions, NonceStoreHarness } from "./harness.ts";

const definitions: readonly NonceCase[] = [
  ...nonceClaimCases,
  ...nonceRetentionCases,
  ...nonceTextCases,
  ...nonceEngineCases,
];

/**
 * The rules of a nonce store, each as a case for a test runner. `makeStore` is called for each case and returns an empty store
 * with its harness. Throws a TypeError on arguments of another kind.
 */
export function nonceStoreContract(
  makeStore: () => Awaitable<NonceStoreHarness>,
  options: ContractOptions = {},
): readonly ContractCase[] {
  return bindContract(
    { factory: "nonceStoreContract", options: ["without"], definitions, facilitiesOf },
    makeStore,
    options,
  );
}

function facilitiesOf(harness: NonceStoreHarness): Facilities {
  return {
    ...commonFacilities(harness),
    transaction: false,
    retention: false,
    list: false,
    prune: harness.store.prune !== undefined,
    close: harness.store.close !== undefined,
  };
}
