export { answerStoreContract } from "./answer-contract.ts";
export type { AnswerStoreHarness } from "./contract.ts";
export { defineCases, type TestRunner } from "./define-cases.ts";
export { idempotencyStoreContract } from "./idempotency-contract.ts";
export { nonceStoreContract } from "./nonce-contract.ts";
export type {
  ContractCase,
  ContractFacility,
  ContractOptions,
  IdempotencyStoreHarness,
  NonceStoreHarness,
} from "./harness.ts";
