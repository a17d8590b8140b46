// What doors and endpoints guard keys with: for whoever writes one.
export type { KeptAnswer } from "./answer-record.ts";
export { keyGuard, keyOwner, runOf, type Admission, type KeyOwner, type WhileConnected } from "./check.ts";
export type { GivenAnswer } from "./replay.ts";
export { beginHandler, goOn, type Passage } from "./middleware.ts";
export type { KeyOwnerOptions } from "./options.ts";
export type { OwnedRun } from "./run.ts";
