export {
  type AnswerMeaning,
  type DeadOutcome,
  type OutcomesOptions,
  type OverdueOutcome,
} from "./options.ts";
export type { JsonValue, Outcome, OutcomeReport } from "./outcome.ts";
export { createOutcomes, type Outcomes } from "./outcomes.ts";
export type { OutcomesCode } from "./refusals.ts";
