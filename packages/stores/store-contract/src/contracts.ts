import type { Awaitable } from "@countersign/idempotency";
import { answerCases } from "./cases/answer-cases.ts";
import { beginCases } from "./cases/begin-cases.ts";
import { beginTextCases } from "./cases/begin-text-cases.ts";
import { clockCases, fenceCases } from "./cases/clock-cases.ts";
import { idempotencyEngineCases } from "./cases/engine-cases.ts";
import { brokenCases, failureCases } from "./cases/failure-cases.ts";
import { holdCases } from "./cases/hold-cases.ts";
import { modelCases } from "./cases/model-cases.ts";
import { nonceCases, nonceTextCases } from "./cases/nonce-cases.ts";
import { raceCases } from "./cases/race-cases.ts";
import { listCases, textCases } from "./cases/text-cases.ts";
import { waitingCases } from "./cases/waiting-cases.ts";
import { workAddCases, workClaimCases } from "./cases/work-add-cases.ts";
import { workEndCases } from "./cases/work-end-cases.ts";
import { workListCases, workOperatorCases } from "./cases/work-operator-cases.ts";
import { workRaceCases } from "./cases/work-race-cases.ts";
import { workTextCases } from "./cases/work-text-cases.ts";
import { bindContract } from "./contract.ts";
import type {
  AnswerStoreHarness,
  ContractCase,
  ContractOptions,
  IdempotencyContractOptions,
  IdempotencyStoreHarness,
  NonceStoreHarness,
  TransactionStoreHarness,
  WorkStoreHarness,
} from "./harness.ts";

/** The rules of an idempotency store as test cases, each on an empty store from `makeStore`. Throws a TypeError on a wrong argument. */
export function idempotencyStoreContract(
  makeStore: () => Awaitable<IdempotencyStoreHarness>,
  options: IdempotencyContractOptions = {},
): readonly ContractCase[] {
  const definitions = [
    ...raceCases,
    ...clockCases,
    ...fenceCases,
    ...textCases,
    ...idempotencyEngineCases,
    ...listCases,
    ...modelCases,
  ];
  return bindContract(
    { factory: "idempotencyStoreContract", definitions, options: ["without", "seed", "histories"] },
    makeStore,
    options,
  );
}

/** The rules of a nonce store, in the same way. Throws a TypeError on a wrong argument. */
export function nonceStoreContract(
  makeStore: () => Awaitable<NonceStoreHarness>,
  options: ContractOptions = {},
): readonly ContractCase[] {
  const definitions = [...nonceCases, ...nonceTextCases];
  return bindContract({ factory: "nonceStoreContract", definitions }, makeStore, options);
}

/** The rules of a store of answers, in the same way. Throws a TypeError on a wrong argument. */
export function answerStoreContract<Tx>(
  makeStore: () => Awaitable<AnswerStoreHarness<Tx>>,
  options: ContractOptions = {},
): readonly ContractCase[] {
  return bindContract({ factory: "answerStoreContract", definitions: answerCases }, makeStore, options);
}

/** The rules of stores with transactions (`TransactionStores`), in the same way. Throws a TypeError on a wrong argument. */
export function transactionStoreContract<Tx>(
  makeStore: () => Awaitable<TransactionStoreHarness<Tx>>,
  options: ContractOptions = {},
): readonly ContractCase[] {
  const definitions = [
    ...beginCases,
    ...beginTextCases,
    ...failureCases,
    ...holdCases,
    ...brokenCases,
    ...waitingCases,
  ];
  return bindContract({ factory: "transactionStoreContract", definitions }, makeStore, options);
}

/** The rules of stores with a table of work (`WorkStores`), in the same way. Throws a TypeError on a wrong argument. */
export function workStoreContract<Tx>(
  makeStore: () => Awaitable<WorkStoreHarness<Tx>>,
  options: ContractOptions = {},
): readonly ContractCase[] {
  const definitions = [
    ...workAddCases,
    ...workClaimCases,
    ...workEndCases,
    ...workOperatorCases,
    ...workListCases,
    ...workTextCases,
    ...workRaceCases,
  ];
  return bindContract({ factory: "workStoreContract", definitions }, makeStore, options);
}
