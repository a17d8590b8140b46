import type { Rules } from "./configuration.ts";
import { encodeState } from "./encoding.ts";
import type { Machine } from "./explorer.ts";
import { guardSteps } from "./guard.ts";
import { handlerSteps } from "./handler.ts";
import { networkSteps } from "./network.ts";
import { operatorSteps } from "./operator.ts";
import { initialState, type KeyStep, type State, type Take } from "./state.ts";

/** The idempotency machine: one key, its store, the guards and handlers of its requests, its operators, and their faults. */
export function keyMachine(rules: Rules): Machine<State, KeyStep> {
  return {
    initial: initialState(rules.attempts),
    encode: encodeState,
    steps(state: State, take: Take): void {
      networkSteps(state, rules, take);
      guardSteps(state, rules, take);
      handlerSteps(state, rules, take);
      operatorSteps(state, rules, take);
    },
  };
}
