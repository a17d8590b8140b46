export type { KeptAnswer } from "./answer-record.ts";
export { keyGuard, keyOwner, runOf, type KeyOwner, type WhileConnected } from "./check.ts";
export { beginHandler, goOn, sendAnswer, unpaidAnswers } from "./middleware.ts";
export { guardForm, leaseOptions } from "./options.ts";
export type { OwnedRun } from "./run.ts";
export { transactionOwner, type TransactionOwner } from "./transaction-owner.ts";
export { transactionGuard } from "./transaction-guard.ts";
