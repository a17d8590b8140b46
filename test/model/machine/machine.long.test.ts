import { describe, expect, test } from "@jest/globals";
import { type Configuration, type ConfigurationName, configurations, type Rules } from "./configuration.ts";
import { describeSound, testArchitecture, timeoutMs, wayTo } from "./describe-machine.ts";
import { type Exploration, explore } from "./explorer.ts";
import { type InvariantName, invariantsOf, noWedge } from "./invariants.ts";
import { keyMachine } from "./machine.ts";
import { foundAnswer, isAlive, isWorking, type KeyStep, type State } from "./state.ts";
import { type Switch, switches } from "./switches.ts";

type Explored = Exploration<State, KeyStep>;

/** All invariants, or those that are named. */
function check(
  configuration: Configuration,
  bugs: Rules["bugs"],
  names?: readonly InvariantName[],
): Explored {
  const rules: Rules = { ...configuration, bugs };
  const all = invariantsOf(rules);
  const invariants =
    names === undefined
      ? all
      : Object.fromEntries(names.flatMap((name) => (name === "I3" ? [] : [[name, all[name]]])));
  const goal = names === undefined || names.includes("I3") ? noWedge : undefined;
  return explore(keyMachine(rules), { invariants, goal });
}

const show = (explored: Explored): string | undefined =>
  wayTo(explored, ({ by, name }, { record, payments }) => {
    const who = by === undefined ? "" : `${by}: `;
    const lease = record.isExpired ? ", expired" : "";
    return `${who}${name}  [${record.state}${lease}, fence ${record.fence}, ${payments} paid]`;
  });

describeSound({
  names: Object.keys(configurations) as ConfigurationName[],
  goal: "leaves the payment within reach",
  check: (name) => check(configurations[name], {}),
  show,
  steps: [
    "records its payment: 2xx",
    "the store refuses its claim: 409",
    "its process is killed",
    "somebody else answers for its handler",
    "a time-out behind the guard answers for its handler",
    "its handler ends with a 2xx that nobody waits for",
    "hears that the key is lost, and aborts its signal",
    "takes the decision about its key back: lost",
    "releases a claim that it gave up",
    "the store executes its claim, which is sent twice: acquired",
    "resolve(released): ok, and it is delivered once more",
    "resolve(released): lost",
    "resolve(done): ok",
    "resolve(done) to pay by hand: ok",
    "an operator pays by hand and decides: done",
    "an operator has second thoughts about a decision",
    "reopen(): ok",
    "reopen(): ok, and it is delivered once more",
    "reopen(): lost",
    "a second operator: reopen(): ok",
    "its answer is not kept",
    "a request finds the key done: the first answer",
    "a request finds the key done: 409",
    "the store refuses its claim: again",
  ],
});

describe("what has to be possible", () => {
  const situations: readonly (readonly [string, ConfigurationName, (state: State) => boolean])[] = [
    ["a payment", "an idempotent call, under rerun", ({ payments }) => payments === 1],
    ["a takeover of a run whose handler works on", "an idempotent call, under rerun", hasTwoHandlers],
    ["a key that is held and whose owner lives", "a call of the bank, under hold", isHeldFromTheLiving],
    // Without reopenings, which raise the fence, too.
    ["a free key after three owners", "three requests, a call of the bank, under hold", isFreeAgain],
    [
      "a key that an operator reopened, and its old handler at work",
      "a call of the bank, under hold",
      isReopened,
    ],
    ["a done key without its answer", "answers given again, an idempotent call, under rerun", isUnanswered],
    ["an answer whose key is held", "answers given again, a call of the bank, under hold", isHeldAnswered],
    ["three handlers at once", "three requests, an idempotent call, under rerun", hasThreeHandlers],
  ];

  test.each(situations)("%s", (_, name, isSo) => {
    const rules: Rules = { ...configurations[name], bugs: {} };
    const invariants = { never: (after: State) => !isSo(after) };
    expect(explore(keyMachine(rules), { invariants }).violation?.name).toBe("never");
  });

  function hasTwoHandlers({ attempts }: State): boolean {
    return attempts.filter(isWorking).length === 2;
  }

  function hasThreeHandlers({ attempts }: State): boolean {
    return attempts.filter(isWorking).length === 3;
  }

  function isUnanswered(state: State): boolean {
    return state.record.state === "done" && foundAnswer(state) === "none";
  }

  function isHeldAnswered(state: State): boolean {
    return state.record.state === "held" && foundAnswer(state) === "other";
  }

  function isHeldFromTheLiving({ record, attempts }: State): boolean {
    const owner = attempts[record.owner];
    return record.state === "held" && owner !== undefined && isAlive(owner);
  }

  function isReopened({ record, attempts }: State): boolean {
    const isWorkedOn = attempts.some((attempt) => isWorking(attempt) && attempt.isOverruled);
    return record.state === "held" && record.fence === 2 && record.generation === 2 && isWorkedOn;
  }

  function isFreeAgain({ record }: State): boolean {
    return record.state === "free" && record.fence === 3;
  }
});

describe("a bug that is put back", () => {
  const bugs = Object.entries(switches) as [Switch, (typeof switches)[Switch]][];
  const rows = bugs.flatMap(([bug, planted]) =>
    planted.breaks.map((invariant, index) => {
      const others: Rules["bugs"] = "beside" in planted ? { [planted.beside]: true } : {};
      const { is, in: where } = planted;
      return { bug, others, is, where, invariant, isFirst: index === 0 };
    }),
  );

  test.each(rows.filter(({ isFirst }) => isFirst))(
    "$bug breaks $invariant first: $is",
    ({ bug, others, where, invariant }) => {
      // What goes wrong beside it breaks something of its own.
      const names = Object.keys(others).length === 0 ? undefined : [invariant];
      const explored = check(configurations[where], { [bug]: true, ...others }, names);
      expect(explored.violation?.name).toBe(invariant);
    },
    timeoutMs,
  );

  test.each(rows.filter(({ isFirst }) => !isFirst))(
    "$bug also breaks $invariant",
    ({ bug, others, where, invariant }) => {
      const explored = check(configurations[where], { [bug]: true, ...others }, [invariant]);
      expect(explored.violation?.name).toBe(invariant);
    },
    timeoutMs,
  );

  // What docs/architecture.md says of `rerun`: it is for handlers that do no harm when they run again.
  test("a bank that pays as often as it is asked pays twice, under rerun", () => {
    const configuration: Configuration = configurations["a call of the bank, under hold"];
    expect(check({ ...configuration, recovery: "rerun" }, {}, ["I1"]).violation?.name).toBe("I1");
  });

  test("an operator who looks away does not break I25: the attempt takes the decision back", () => {
    const { in: where, beside } = switches.lostSuccessForgotten;
    const explored = check(configurations[where], { [beside]: true }, ["I25"]);
    expect(show(explored)).toBeUndefined();
    expect([...explored.steps]).toContain("takes the decision about its key back: ok");
  });

  test("every invariant is the first to break for some bug", () => {
    const broken = new Set(bugs.map(([, { breaks }]) => breaks[0]));
    const rules: Rules = { ...configurations["an idempotent call, under rerun"], bugs: {} };
    expect(broken).toEqual(new Set([noWedge.name, ...Object.keys(invariantsOf(rules))]));
  });

  testArchitecture(bugs.map(([bug, { breaks }]) => [bug, breaks[0]]));

  test("is shown with a shortest way into it", () => {
    const explored = check(configurations["an idempotent call, under rerun"], { inFlightIs409: true });
    expect(show(explored)).toBe(`I2 is broken:
  0: a request arrives and its claim is sent  [free, fence 0, 0 paid]
  1: a request arrives and its claim is sent  [free, fence 0, 0 paid]
  0: the store executes its claim: acquired  [running, fence 1, 0 paid]
  1: the store refuses its claim: 409  [running, fence 1, 0 paid]`);
  });
});
