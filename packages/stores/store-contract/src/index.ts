export { answerStoreContract, idempotencyStoreContract, nonceStoreContract } from "./contracts.ts";
export { defineCases, type TestRunner } from "./define-cases.ts";
export type {
  AnswerStoreHarness,
  ContractCase,
  ContractFacility,
  IdempotencyStoreHarness,
  NonceStoreHarness,
} from "./harness.ts";
