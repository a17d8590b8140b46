export { readRecord, readStepOf, type KeyAttempt } from "./attempt-store.ts";
export { begunAtMs, failureFingerprint, failureKey, isFailureCount } from "./record-facts.ts";
export { assertTimeoutInLease, keyRules, type ResolvedKeyOptions } from "./key-options.ts";
export { alarm, failure, notice, noticeOfEnd } from "./notices.ts";
export { Waiters } from "./waiters.ts";
export { readDrainTimeout, type KeyRefusal } from "./idempotency-keys.ts";
export { answerOf, runSteps, runStepsNow, type Steps } from "./transactions/steps.ts";
export type {
  Behind,
  NotRun,
  OpenTransaction,
  TransactionAttempt,
} from "./transactions/transaction-attempt.ts";
export { Transactor } from "./transactions/transactor.ts";
export {
  assertInMode,
  assertNoLeaseOptions,
  readTransactionStores,
  transactionTable,
  type ResolvedTransactionOptions,
  type TransactionOptions,
} from "./transactions/transaction-options.ts";
