// A key whose handler gets the transaction, alone and beside leases; invariants are named as in docs/architecture.md.
import { describeBugs, describeSound, wayTo } from "../machine/describe-machine.ts";
import { type Exploration, explore, type Invariants } from "../machine/explorer.ts";
import { transactionMachine } from "./machine.ts";
import { isLocked, type TransactionRules, type TransactionState, type TransactionStep } from "./state.ts";
import { transactionSwitches } from "./switches.ts";

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

function invariantsOf({ recovery, places }: Configuration): Invariants<TransactionState, TransactionStep> {
  const isUnderLease = ({ by }: TransactionStep): boolean => by !== undefined && places[by] === "lease";
  // Handlers do no harm there that run again: what was paid before is paid.
  const isRerun = recovery === "rerun";
  return {
    I26: ({ payments }, { by, isOnItsWay, told }, before) =>
      (isOnItsWay !== true || told !== "2xx") &&
      (by === undefined || payments === before.payments || before.requests[by]?.phase !== "refusing"),
    I27: (_, { told, by }, { record }) => told !== "400" || record.state === "free" || record.owner !== by,
    I28: ({ record }, { isIdle, told }) => isIdle !== true || (told === "503" && record.state === "held"),
    I29: ({ record }, { isEarly }) =>
      isEarly !== true || (record.state === "running" && record.recovery === "hold"),
    I1: ({ payments }) => payments <= 1,
    I2: ({ record, payments }, { told }) => payments > 0 || (record.state !== "done" && told !== "409"),
    I17: (after, step, before) => isUnderLease(step) || isRerun || isDoneWithItsPayment(after, step, before),
    I6: (_, { told, by }, { record }) => told !== "ok" || record.owner === by,
    I7(_, { told }, before) {
      if (told !== "begun" && told !== "acquired") return true;
      const { state, isExpired, recovery: own } = before.record;
      const isOver = state === "running" && isExpired && own === "rerun" && recovery === "rerun";
      return (state === "free" || isOver) && !isLocked(before);
    },
    I8: ({ record }, _, before) => record.fence >= before.record.fence,
    I10: ({ record }, { decides }, { record: before }) =>
      before.state !== "done" ||
      record.state === "done" ||
      (before.isDecided && decides?.outcome === "reopened"),
    I16: ({ payments }, step, before) =>
      step.told !== "2xx" ||
      (isUnderLease(step) || isRerun ? payments > 0 : payments === before.payments + 1),
    I18: ({ finalAnswers }) => finalAnswers <= 1,
  };
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
    "the last statement fails; ROLLBACK: 500",
    "a replay has used its nonce meanwhile: 503",
    "its handler has changed no row; its key is held: 503",
    "a statement has no answer when its handler settles; ROLLBACK: 500",
    "its handler refuses behind its own COMMIT; its key is held: 503",
    "a statement of its handler commits what is open",
    "the last statement finds another transaction, or none; its key is held: 500",
    "its handler pays behind that, which commits by itself; its key is held: 500",
    "the last statement finds no key; ROLLBACK, and it is held: 500",
    "a deadlock ends its transaction; its handler pays, and commits by itself; its key is held: 500",
    "records its payment: 2xx",
    "holds the key: 503",
    "a conflict rolls back, and all runs again",
    "resolve(released): ok",
    "reopen(): ok",
    "a free key is pruned",
  ],
});

describeBugs(transactionSwitches, check);
