export {
  answerStoreContract,
  idempotencyStoreContract,
  nonceStoreContract,
  transactionStoreContract,
  workStoreContract,
} from "./contracts.ts";
export { defineCases, type TestRunner } from "./define-cases.ts";
export type {
  AnswerStoreHarness,
  ContractCase,
  ContractFacility,
  IdempotencyStoreHarness,
  NonceStoreHarness,
  TransactionStoreHarness,
  WorkStoreHarness,
} from "./harness.ts";
