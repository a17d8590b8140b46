export { createOutcomeSender } from "./outcome-sender.ts";
export type { OutcomesOptions } from "./options.ts";
export type { Outcome, OutcomeReport } from "./outcome.ts";
export { createOutcomes, type Outcomes } from "./outcomes.ts";
export type { OutcomesCode } from "./refusals.ts";
