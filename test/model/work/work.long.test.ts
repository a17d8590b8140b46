// The tasks of one entity; invariants are named as in docs/architecture.md.
import { readFileSync } from "node:fs";
import { describe, expect, test } from "@jest/globals";
import { type Exploration, explore, type Invariant } from "../machine/explorer.ts";
import { workMachine } from "./machine.ts";
import type { WorkRules, WorkState, WorkStep } from "./state.ts";
import { type WorkSwitch, workSwitches } from "./switches.ts";

type Explored = Exploration<WorkState, WorkStep>;
type Configuration = Omit<WorkRules, "bugs">;

const timeoutMs = 120_000;
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

function invariantsOf(rules: Configuration): readonly Invariant<WorkState, WorkStep>[] {
  const { hasOperator } = rules;
  return [
    {
      name: "I19",
      holds: ({ tasks }, { told, task }) => told !== "claimed" || tasks[task!]!.isCaused,
    },
    {
      name: "I20",
      holds: ({ tasks }) =>
        !isInside(rules) || tasks.every(({ state, applied }) => applied === (state === "done" ? 1 : 0)),
    },
    {
      name: "I21",
      // A dead task that runs again is older than what ran meanwhile.
      holds: (_, { told, task }, { tasks }) =>
        hasOperator ||
        (told !== "committed" && told !== "claimed") ||
        !tasks.some(({ state, added }) => state === "open" && added < tasks[task!]!.added),
    },
    {
      name: "I23",
      holds: ({ tasks }, { told, task }) => told !== "acknowledged" || tasks[task!]!.isCaused,
    },
    {
      name: "I24",
      holds: ({ tasks }) =>
        isInside(rules) || tasks.every(({ state, isActed }) => state !== "done" || isActed),
    },
  ];
}

const allEnd = {
  name: "I22",
  reached: ({ tasks }: WorkState) =>
    tasks.every(({ state, isAcknowledged }) => (state === "done" || state === "dead") && isAcknowledged),
};

function check(name: ConfigurationName, bugs: WorkRules["bugs"] = {}): Explored {
  const configuration: Configuration = configurations[name];
  const machine = workMachine({ ...configuration, bugs });
  const explored = explore(machine, { invariants: invariantsOf(configuration), goal: allEnd });
  const { states, transitions, ms } = explored;
  const title = [name, ...Object.keys(bugs)].join(", ");
  process.stdout.write(`model: ${title}: ${states} states, ${transitions} transitions, ${ms} ms\n`);
  return explored;
}

/** The way to a violation, a step a line; undefined when there is none. */
function show({ violation }: Explored): string | undefined {
  if (violation === undefined) return undefined;
  const lines = violation.trace.map(({ step, after: { tasks, lane } }) => {
    const told = tasks.map(
      ({ state, number, attempts, applied }) => `${state}/${number}/${attempts}/${applied}`,
    );
    return `  ${step.by ?? "-"}: ${step.name} (${step.task ?? "-"})  [${told.join(", ")}; ${JSON.stringify(lane)}]`;
  });
  return [`${violation.name} is broken:`, ...lines].join("\n");
}

describe("the sound machine", () => {
  const names = Object.keys(configurations) as ConfigurationName[];
  const explored = new Map<ConfigurationName, Explored>();
  const sound = (name: ConfigurationName): Explored => {
    const known = explored.get(name) ?? check(name);
    explored.set(name, known);
    return known;
  };

  test.each(names)(
    "%s: breaks no invariant, and each task ends",
    (name) => expect(show(sound(name))).toBeUndefined(),
    timeoutMs,
  );

  // An invariant holds easily where nothing happens.
  test.each([
    "its cause rolls back",
    "it is added again: known",
    "finish(): not its own; rolls back",
    "fails, and another has the task",
    "claims a task whose attempts are used up: dead",
    "COMMIT, and its answer is lost",
    "COMMIT does not arrive: rolled back",
    "the lease ends",
    "an operator lets a dead task run again",
  ])(
    "takes the step: %s",
    (step) => expect(names.filter((name) => sound(name).steps.has(step))).not.toEqual([]),
    timeoutMs,
  );
});

describe("a bug that is put back", () => {
  const bugs = Object.entries(workSwitches) as [WorkSwitch, (typeof workSwitches)[WorkSwitch]][];

  test.each(bugs)(
    "%s breaks its invariant first",
    (bug, { in: where, breaks }) => {
      expect(check(where, { [bug]: true }).violation?.name).toBe(breaks);
    },
    timeoutMs,
  );

  test.each(bugs)("%s stands in docs/architecture.md, at that invariant", (bug, { breaks }) => {
    const page = readFileSync(new URL("../../../docs/architecture.md", import.meta.url), "utf8");
    const [, entry] = new RegExp(`^- \\*\\*${breaks} ([^]*?)(?=^- |^$)`, "m").exec(page) ?? [];
    expect(entry).toMatch(new RegExp(`\\b${bug}\\b`));
  });
});
