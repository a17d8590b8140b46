export type { KeptAnswer } from "./answer-record.ts";
export { keyGuard, keyOwner, runOf, type KeyOwner, type WhileConnected } from "./check.ts";
export { beginHandler, goOn } from "./middleware.ts";
export type { KeyOwnerOptions } from "./options.ts";
export type { OwnedRun } from "./run.ts";
