export {
  answerStoreContract,
  idempotencyStoreContract,
  nonceStoreContract,
  transactionStoreContract,
  workStoreContract,
} from "./contracts.ts";
export { defineCases, type TestRunner } from "./define-cases.ts";
export type { ContractCase, StoreHarnesses } from "./harness.ts";
