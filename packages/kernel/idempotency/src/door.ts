export { recordReader, type KeyAttempt } from "./attempt-store.ts";
export { begunAtMs, failureCount, isFailureCount } from "./record-facts.ts";
export { assertTimeoutInLease, keyRules } from "./key-options.ts";
export { keyNotices, noticeOfEnd } from "./notices.ts";
export { Waiters } from "./waiters.ts";
export { readDrainTimeout } from "./idempotency-keys.ts";
export { answerOf, runStepsIn, type Steps } from "./transactions/steps.ts";
export type { Behind, NotRun, OpenTransaction } from "./transactions/transaction-attempt.ts";
export { Transactor } from "./transactions/transactor.ts";
export {
  assertInMode,
  assertNoLeaseOptions,
  readTransactionStores,
  transactionTable,
  type TransactionOptions,
} from "./transactions/transaction-options.ts";
