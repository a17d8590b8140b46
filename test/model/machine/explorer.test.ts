import { describe, expect, test } from "@jest/globals";
import { type Exploration, type Machine, type Step, explore } from "./explorer.ts";

interface Jugs {
  readonly small: number;
  readonly large: number;
}

/** Two jugs, of 3 and 5 litres, a tap and a drain. */
const jugs: Machine<Jugs, Step> = {
  initial: { small: 0, large: 0 },
  encode: ({ small, large }) => `${small} ${large}`,
  steps({ small, large }, take) {
    const intoLarge = Math.min(small, 5 - large);
    const intoSmall = Math.min(large, 3 - small);
    take({ name: "fill the small one", fair: true }, { small: 3, large });
    take({ name: "fill the large one", fair: true }, { small, large: 5 });
    take({ name: "empty the small one", fair: true }, { small: 0, large });
    take({ name: "empty the large one", fair: true }, { small, large: 0 });
    take(
      { name: "pour into the large one", fair: true },
      { small: small - intoLarge, large: large + intoLarge },
    );
    take(
      { name: "pour into the small one", fair: true },
      { small: small + intoSmall, large: large - intoSmall },
    );
  },
};

/** Steps from 0 to 9; from 5 on only a fault leads back. */
const oneWay: Machine<number, Step> = {
  initial: 0,
  encode: String,
  steps(at, take) {
    if (at < 9) take({ name: "on", fair: true }, at + 1);
    if (at > 0) take({ name: "back", fair: at < 5 }, at - 1);
  },
};

function namesOf({ violation }: Exploration<unknown, Step>): string[] | undefined {
  return violation?.trace.map(({ step }) => step.name);
}

describe("explore", () => {
  test("visits each state once, counts every transition and terminates", () => {
    const found = explore(jugs, { invariants: [] });
    expect(found).toMatchObject({ states: 16, transitions: 96, violation: undefined });
    expect(found.steps.size).toBe(6);
  });

  test("reports a shortest way to the violation", () => {
    const found = explore(jugs, {
      invariants: [
        { name: "not 7", holds: ({ small, large }) => small + large !== 7 },
        { name: "never 4 in the large one", holds: ({ large }) => large !== 4 },
      ],
    });
    expect(found.violation?.name).toBe("not 7");
    const four = explore(jugs, { invariants: [{ name: "no 4", holds: ({ large }) => large !== 4 }] });
    expect(four.violation?.trace.at(-1)?.after).toMatchObject({ large: 4 });
    expect(namesOf(four)).toEqual([
      "fill the large one",
      "pour into the small one",
      "empty the small one",
      "pour into the small one",
      "fill the large one",
      "pour into the small one",
    ]);
  });

  test("shows an invariant the step and the state before it", () => {
    const { violation } = explore(oneWay, {
      invariants: [
        {
          name: "back from 3",
          holds: (after, { name }, before) => !(name === "back" && before === 3 && after === 2),
        },
      ],
    });
    expect(violation).toMatchObject({ name: "back from 3", trace: { length: 4 } });
  });

  test("finds the first state out of whose reach the goal is, and lets no fault be the way", () => {
    const home = { name: "home", reached: (at: number) => at === 0 };
    const found = explore(oneWay, { invariants: [], goal: home });
    expect(found.violation?.name).toBe("home");
    expect(namesOf(found)).toEqual(["on", "on", "on", "on", "on"]);
    const end = { name: "end", reached: (at: number) => at === 9 };
    expect(explore(oneWay, { invariants: [], goal: end }).violation).toBeUndefined();
  });

  test("refuses a machine that is larger than it may be", () => {
    const endless: Machine<number, Step> = {
      ...oneWay,
      steps: (at, take) => take({ name: "on", fair: true }, at + 1),
    };
    expect(() => explore(endless, { invariants: [], maxStates: 1_000 })).toThrow(RangeError);
  });
});
