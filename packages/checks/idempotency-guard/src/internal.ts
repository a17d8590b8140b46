export type { KeptAnswer } from "./answer-record.ts";
export { keyOwner, runOf, type KeyOwner, type WhileConnected } from "./check.ts";
export { EarlyAnswer, goOn, sendAnswer, unpaidAnswers } from "./middleware.ts";
export { leaseOptions } from "./options.ts";
export type { OwnedRun } from "./run.ts";
export { transactionOwner, type TransactionOwner } from "./transaction-owner.ts";
export { requestGuard } from "./transaction-guard.ts";
