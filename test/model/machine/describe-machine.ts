// What the tests of all machines say of one.
import { readFileSync } from "node:fs";
import { describe, expect, test } from "@jest/globals";
import type { Exploration, Step } from "./explorer.ts";

export const timeoutMs = 120_000;

interface Sound<State, S extends Step, Name extends string> {
  readonly names: readonly Name[];
  /** What stays within reach. */
  readonly goal: string;
  /** An invariant holds easily where nothing happens: some configuration takes each of these. */
  readonly steps: readonly string[];
  check(name: Name): Exploration<State, S>;
  show(explored: Exploration<State, S>): string | undefined;
}

export function describeSound<State, S extends Step, Name extends string>({
  names,
  goal,
  steps,
  check,
  show,
}: Sound<State, S, Name>): void {
  describe("the sound machine", () => {
    const explored = new Map<Name, Exploration<State, S>>();
    const sound = (name: Name): Exploration<State, S> => {
      const known = explored.get(name) ?? check(name);
      explored.set(name, known);
      return known;
    };

    test.each(names)(
      `%s: breaks no invariant, and ${goal}`,
      (name) => expect(show(sound(name))).toBeUndefined(),
      timeoutMs,
    );

    test.each(steps)(
      "takes the step: %s",
      (step) => expect(names.filter((name) => sound(name).steps.has(step))).not.toEqual([]),
      timeoutMs,
    );
  });
}

/** The way to a violation, a step a line; undefined when there is none. */
export function wayTo<State, S extends Step>(
  { violation }: Exploration<State, S>,
  line: (step: S, after: State) => string,
): string | undefined {
  if (violation === undefined) return undefined;
  const lines = violation.trace.map(({ step, after }) => `  ${line(step, after)}`);
  return [`${violation.name} is broken:`, ...lines].join("\n");
}

/** Of each bug the invariant that it breaks first. */
export function testArchitecture(bugs: readonly (readonly [bug: string, invariant: string])[]): void {
  test.each(bugs)("%s stands in docs/architecture.md, at the invariant %s", (bug, invariant) => {
    const page = readFileSync(new URL("../../../docs/architecture.md", import.meta.url), "utf8");
    const [, entry] = new RegExp(`^- \\*\\*${invariant} ([^]*?)(?=^- |^$)`, "m").exec(page) ?? [];
    expect(entry).toMatch(new RegExp(`\\b${bug}\\b`));
  });
}

/** A bug that is put back into a machine, and the invariant that is the first to break. */
interface Planted<Name extends string> {
  readonly in: Name;
  readonly breaks: string;
}

export function describeBugs<State, S extends Step, Name extends string, Bug extends string>(
  switches: Readonly<Record<Bug, Planted<Name>>>,
  check: (name: Name, bugs: Readonly<Partial<Record<Bug, true>>>) => Exploration<State, S>,
): void {
  describe("a bug that is put back", () => {
    const bugs = Object.entries(switches) as [Bug, Planted<Name>][];

    test.each(bugs)(
      "%s breaks its invariant first",
      (bug, { in: where, breaks }) => {
        const planted: Partial<Record<Bug, true>> = {};
        planted[bug] = true;
        expect(check(where, planted).violation?.name).toBe(breaks);
      },
      timeoutMs,
    );

    testArchitecture(bugs.map(([bug, { breaks }]) => [bug, breaks]));
  });
}
