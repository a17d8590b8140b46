// The tasks of one entity; invariants are named as in docs/architecture.md.
import { describeBugs, describeSound, wayTo } from "../machine/describe-machine.ts";
import { type Exploration, explore, type Invariants } from "../machine/explorer.ts";
import { workMachine } from "./machine.ts";
import type { WorkRules, WorkState, WorkStep } from "./state.ts";
import { workSwitches } from "./switches.ts";

type Explored = Exploration<WorkState, WorkStep>;
type Configuration = Omit<WorkRules, "bugs">;

const two = { tasks: 2, workers: 2, handler: "inside", maxAttempts: 2, hasOperator: false } as const;

const configurations = {
  "two tasks, inside": two,
  "two tasks, outside": { ...two, handler: "outside" },
  "two tasks and an operator, inside": { ...two, hasOperator: true },
  "three tasks, inside": { ...two, tasks: 3, maxAttempts: 1 },
  "three workers, inside": { ...two, workers: 3 },
  "three workers, outside": { ...two, workers: 3, handler: "outside" },
} as const satisfies Readonly<Record<string, Configuration>>;

type ConfigurationName = keyof typeof configurations;

const isInside = ({ handler }: Configuration): boolean => handler === "inside";

function invariantsOf(rules: Configuration): Invariants<WorkState, WorkStep> {
  const { hasOperator } = rules;
  return {
    I19: ({ tasks }, { told, task }) => told !== "claimed" || tasks[task!]!.isCaused,
    I20: ({ tasks }) =>
      !isInside(rules) || tasks.every(({ state, applied }) => applied === (state === "done" ? 1 : 0)),
    // A dead task that runs again is older than what ran meanwhile.
    I21: (_, { told, task }, { tasks }) =>
      hasOperator ||
      (told !== "committed" && told !== "claimed") ||
      !tasks.some(({ state, added }) => state === "open" && added < tasks[task!]!.added),
    I23: ({ tasks }, { told, task }) => told !== "acknowledged" || tasks[task!]!.isCaused,
    I24: ({ tasks }) => isInside(rules) || tasks.every(({ state, isActed }) => state !== "done" || isActed),
  };
}

const allEnd = {
  name: "I22",
  reached: ({ tasks }: WorkState) =>
    tasks.every(({ state, isAcknowledged }) => (state === "done" || state === "dead") && isAcknowledged),
};

function check(name: ConfigurationName, bugs: WorkRules["bugs"] = {}): Explored {
  const configuration: Configuration = configurations[name];
  const machine = workMachine({ ...configuration, bugs });
  return explore(machine, { invariants: invariantsOf(configuration), goal: allEnd });
}

const show = (explored: Explored): string | undefined =>
  wayTo(explored, (step, { tasks, lane }) => {
    const told = tasks.map(
      ({ state, number, attempts, applied }) => `${state}/${number}/${attempts}/${applied}`,
    );
    return `${step.by ?? "-"}: ${step.name} (${step.task ?? "-"})  [${told.join(", ")}; ${JSON.stringify(lane)}]`;
  });

describeSound({
  names: Object.keys(configurations) as ConfigurationName[],
  goal: "each task ends",
  check: (name) => check(name),
  show,
  steps: [
    "its cause rolls back",
    "it is added again: known",
    "finish(): not its own; rolls back",
    "fails, and another has the task",
    "claims a task whose attempts are used up: dead",
    "COMMIT, and its answer is lost",
    "COMMIT does not arrive: rolled back",
    "the lease ends",
    "an operator lets a dead task run again",
  ],
});

describeBugs(workSwitches, check);
