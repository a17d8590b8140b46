import type { Awaitable } from "@countersign/idempotency";
import { answerCases } from "./cases/answer-cases.ts";
import { type AnswerStoreHarness, type Facilities, bindContract, commonFacilities } from "./contract.ts";
import type { ContractCase, ContractOptions } from "./harness.ts";

/**
 * The rules of a store of answers, each as a case for a test runner. `makeStore` is called for each case and returns an empty store
 * with its harness. Throws a TypeError on arguments of another kind.
 */
export function answerStoreContract(
  makeStore: () => Awaitable<AnswerStoreHarness>,
  options: ContractOptions = {},
): readonly ContractCase[] {
  return bindContract(
    { factory: "answerStoreContract", options: ["without"], definitions: answerCases, facilitiesOf },
    makeStore,
    options,
  );
}

function facilitiesOf(harness: AnswerStoreHarness): Facilities {
  return {
    ...commonFacilities(harness),
    transaction: false,
    retention: harness.store.retentionMs !== undefined,
    list: false,
    prune: true,
    close: true,
  };
}
