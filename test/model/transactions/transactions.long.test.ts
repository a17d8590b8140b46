// A key whose handler gets the transaction, alone and beside leases; invariants are named as in docs/architecture.md.
import { describe, expect, test } from "@jest/globals";
import { describeSound, reported, testArchitecture, timeoutMs, wayTo } from "../machine/describe-machine.ts";
import { type Exploration, explore, type Invariant } from "../machine/explorer.ts";
import { transactionMachine } from "./machine.ts";
import { isLocked, type TransactionRules, type TransactionState, type TransactionStep } from "./state.ts";
import { type TransactionSwitch, transactionSwitches } from "./switches.ts";

type Explored = Exploration<TransactionState, TransactionStep>;
type Configuration = Omit<TransactionRules, "bugs">;

const alone = { places: ["transaction", "transaction"], recovery: "hold", hasOperator: false } as const;
const beside = {
  places: ["transaction", "transaction", "lease"],
  recovery: "rerun",
  hasOperator: true,
} as const;

const configurations = {
  "two requests": alone,
  "three requests": { ...alone, places: [...alone.places, "transaction"] },
  "a deadlock ends all": { ...alone, hasOperator: true, deadlockEndsAll: true },
  "beside a lease, under rerun": beside,
  "beside a lease, under hold": { ...beside, recovery: "hold" },
  "beside two leases, under rerun": { ...beside, places: ["transaction", "lease", "lease"] },
  "beside two leases, under hold": { ...beside, places: ["transaction", "lease", "lease"], recovery: "hold" },
  "leases given up, under rerun": { ...beside, hasOperator: false, leasesAreOver: true },
} as const satisfies Readonly<Record<string, Configuration>>;

type ConfigurationName = keyof typeof configurations;

function invariantsOf({ recovery }: Configuration): readonly Invariant<TransactionState, TransactionStep>[] {
  return [
    { name: "I1", holds: ({ payments }) => payments <= 1 },
    {
      name: "I2",
      holds: ({ record, payments }, { told }) => payments > 0 || (record.state !== "done" && told !== "409"),
    },
    { name: "I17", holds: isDoneWithItsPayment },
    { name: "I6", holds: (_, { told, by }, { record }) => told !== "ok" || record.owner === by },
    {
      name: "I7",
      holds: (_, { told }, before) => {
        if (told !== "begun" && told !== "acquired") return true;
        const { state, isExpired } = before.record;
        const isOver = state === "run" && isExpired && recovery === "rerun";
        return (state === "free" || isOver) && !isLocked(before);
      },
    },
    { name: "I8", holds: ({ record }, _, before) => record.fence >= before.record.fence },
    {
      name: "I10",
      holds: ({ record }, { decides }, { record: before }) =>
        before.state !== "done" ||
        record.state === "done" ||
        (before.isDecided && decides?.outcome === "reopened"),
    },
    {
      name: "I16",
      holds: ({ payments }, { told }, before) => told !== "2xx" || payments === before.payments + 1,
    },
    { name: "I18", holds: ({ finalAnswers }) => finalAnswers <= 1 },
  ];
}

/** I17: what a request does makes the key done exactly when it makes a payment. An operator's decisions and payments are their own, and so are those of a handler that commits by itself. */
function isDoneWithItsPayment(
  after: TransactionState,
  { by, isAlone }: TransactionStep,
  before: TransactionState,
): boolean {
  if (by === undefined || isAlone === true) return true;
  const isNew = after.record.generation !== before.record.generation || before.record.state !== "done";
  const isMadeDone = after.record.state === "done" && isNew;
  return isMadeDone === (after.payments === before.payments + 1);
}

const noWedge = { name: "I3", reached: ({ payments }: TransactionState) => payments > 0 };

function check(name: ConfigurationName, bugs: TransactionRules["bugs"] = {}): Explored {
  const configuration: Configuration = configurations[name];
  const machine = transactionMachine({ ...configuration, bugs });
  return explore(machine, { invariants: invariantsOf(configuration), goal: noWedge });
}

const show = (explored: Explored): string | undefined =>
  wayTo(explored, ({ by, name }, { record, payments }) => {
    const lease = record.isExpired ? ", expired" : "";
    return `${by ?? "-"}: ${name}  [${record.state}${lease}, fence ${record.fence}, ${payments} paid]`;
  });

describeSound({
  names: Object.keys(configurations) as ConfigurationName[],
  goal: "leaves the payment within reach",
  check: (name) => check(name),
  show,
  steps: [
    "finds the key done: 409",
    "its nonce was used before: 401",
    "COMMIT, and its answer is lost",
    "its COMMIT arrives late",
    "the last statement fails; to the savepoint, COMMIT: 500",
    "the last statement finds no key; ROLLBACK, and it is held: 500",
    "a deadlock ends its transaction; its handler pays, and commits by itself; its key is held: 500",
    "completeIn(): lost; its handler rolls back",
    "a conflict rolls back, and all runs again",
    "resolve(released): ok",
    "reopen(): ok",
    "a free key is pruned",
  ],
});

describe("a bug that is put back", () => {
  const bugs = Object.entries(transactionSwitches) as [
    TransactionSwitch,
    (typeof transactionSwitches)[TransactionSwitch],
  ][];

  test.each(bugs)(
    "%s breaks its invariant first",
    (bug, { in: where, breaks }) => {
      expect(reported(`${where}, ${bug}`, check(where, { [bug]: true })).violation?.name).toBe(breaks);
    },
    timeoutMs,
  );

  testArchitecture(bugs.map(([bug, { breaks }]) => [bug, breaks]));
});
