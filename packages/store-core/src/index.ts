export { assertDecision, assertDuration, assertOpen, assertOutcome, assertText } from "./arguments.ts";
export { assertListQuery, cursorBehind, damagedCursor, keyBefore } from "./list-query.ts";
export { startPruning, type Pruning } from "./pruning.ts";
export { decodeText, encodeText } from "./stored-text.ts";
