import type { Awaitable } from "@countersign/idempotency";
import { answerCases } from "./cases/answer-cases.ts";
import { beginCases } from "./cases/begin-cases.ts";
import { beginTextCases } from "./cases/begin-text-cases.ts";
import { clockCases } from "./cases/clock-cases.ts";
import { fenceCases } from "./cases/fence-cases.ts";
import { idempotencyEngineCases } from "./cases/idempotency-engine-cases.ts";
import { listCases } from "./cases/list-cases.ts";
import { modelCases } from "./cases/model-cases.ts";
import { nonceCases } from "./cases/nonce-cases.ts";
import { nonceTextCases } from "./cases/nonce-text-cases.ts";
import { raceCases } from "./cases/race-cases.ts";
import { textCases } from "./cases/text-cases.ts";
import { brokenCases } from "./cases/broken-cases.ts";
import { transactionCases } from "./cases/transaction-cases.ts";
import { undoCases } from "./cases/undo-cases.ts";
import { waitingCases } from "./cases/waiting-cases.ts";
import { workAddCases } from "./cases/work-add-cases.ts";
import { workClaimCases } from "./cases/work-claim-cases.ts";
import { workEndCases } from "./cases/work-end-cases.ts";
import { workListCases } from "./cases/work-list-cases.ts";
import { workOperatorCases } from "./cases/work-operator-cases.ts";
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
export function idempotencyStoreContract<Tx>(
  makeStore: () => Awaitable<IdempotencyStoreHarness<Tx>>,
  options: IdempotencyContractOptions = {},
): readonly ContractCase[] {
  const definitions = [
    ...raceCases,
    ...clockCases,
    ...fenceCases,
    ...textCases,
    ...idempotencyEngineCases,
    ...transactionCases,
    ...listCases,
    ...modelCases,
  ];
  const known = ["without", "seed", "histories"] as const;
  return bindContract(
    { factory: "idempotencyStoreContract", options: known, definitions },
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
  return bindContract(
    { factory: "nonceStoreContract", options: ["without"], definitions },
    makeStore,
    options,
  );
}

/** The rules of a store of answers, in the same way. Throws a TypeError on a wrong argument. */
export function answerStoreContract<Tx>(
  makeStore: () => Awaitable<AnswerStoreHarness<Tx>>,
  options: ContractOptions = {},
): readonly ContractCase[] {
  const contract = {
    factory: "answerStoreContract",
    options: ["without"],
    definitions: answerCases,
  } as const;
  return bindContract(contract, makeStore, options);
}

/** The rules of stores with transactions (`TransactionStores`), in the same way. Throws a TypeError on a wrong argument. */
export function transactionStoreContract<Tx>(
  makeStore: () => Awaitable<TransactionStoreHarness<Tx>>,
  options: ContractOptions = {},
): readonly ContractCase[] {
  const definitions = [...beginCases, ...beginTextCases, ...undoCases, ...brokenCases, ...waitingCases];
  return bindContract(
    { factory: "transactionStoreContract", options: ["without"], definitions },
    makeStore,
    options,
  );
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
  return bindContract(
    { factory: "workStoreContract", options: ["without"], definitions },
    makeStore,
    options,
  );
}
