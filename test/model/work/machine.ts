// The table of work: one entity's tasks, its lane, and the workers of several processes; idempotency/work and the stores' work.
import type { Machine } from "../machine/explorer.ts";
import {
  encodeWork,
  headOf,
  idleAgain,
  initialWork,
  nothing,
  type Take,
  type Task,
  withLane,
  withTask,
  withWorker,
  type WorkRules,
  type WorkState,
  type WorkStep,
} from "./state.ts";

const mostRetries = 1;

export function workMachine(rules: WorkRules): Machine<WorkState, WorkStep> {
  return {
    initial: initialWork(rules),
    encode: encodeWork,
    steps(state, take) {
      state.tasks.forEach((_, index) => add(state, index, rules, take));
      state.workers.forEach((_, by) => work({ state, by, rules, take }));
      leaseEnds(state, take);
      if (rules.hasOperator) operate(state, take);
    },
  };
}

/** The transaction that causes a task. */
function add(state: WorkState, index: number, { bugs }: WorkRules, take: Take): void {
  const task = state.tasks[index]!;
  const { lane } = state;
  const lock = { by: "a", index } as const;
  const isOurs = lane.lock?.by === "a" && lane.lock.index === index;
  if (task.state === "none" && (lane.lock === undefined || (bugs.laneSeen === true && lane.exists))) {
    const place = state.nextNumber;
    const numbered = { ...nothing, state: "adding", number: place, added: place } as const;
    const next = { ...withTask(state, index, numbered), nextNumber: place + 1 };
    const locked = lane.lock === undefined && !(bugs.laneSeen === true && lane.exists) ? { lock } : {};
    take({ name: "a task is added in its cause's transaction", fair: true }, withLane(next, locked));
    if (bugs.addedAlone === true) {
      const open = withTask(next, index, { state: "open" });
      take({ name: "a task is added by itself", fair: true }, withLane(open, { exists: true }));
    }
  }
  if (task.state === "adding") {
    const unlocked = isOurs ? { lock: undefined } : {};
    const open = withTask(state, index, { state: "open", isCaused: true });
    const exists = isOurs ? { exists: true } : {};
    const committed = withLane(open, { ...unlocked, ...exists });
    take({ name: "its cause commits, and the answer is lost", fair: true }, committed);
    const told = withTask(committed, index, { isAcknowledged: true });
    take({ name: "its cause commits", fair: true, told: "acknowledged", task: index }, told);
    take({ name: "its cause rolls back", fair: false }, withLane(withTask(state, index, nothing), unlocked));
    if (bugs.acknowledgedEarly === true) {
      const early = withTask(state, index, { isAcknowledged: true });
      take({ name: "its cause is acknowledged", fair: false, told: "acknowledged", task: index }, early);
    }
  } else if (task.state !== "none" && task.isCaused && !task.isAcknowledged) {
    const told = withTask(state, index, { isAcknowledged: true });
    take({ name: "it is added again: known", fair: true, told: "acknowledged", task: index }, told);
  }
  // What was not told comes again: the cause may have rolled back.
  if (task.state === "open" && !task.isCaused) {
    take({ name: "its cause commits behind it", fair: true }, withTask(state, index, { isCaused: true }));
  }
}

interface Turn {
  readonly state: WorkState;
  readonly by: number;
  readonly rules: WorkRules;
  readonly take: Take;
}

function work(turn: Turn): void {
  const { state, by, rules, take } = turn;
  const { phase, task, claim } = state.workers[by]!;
  const { bugs } = rules;
  if (phase === "idle") {
    claims(turn);
    return;
  }
  const isLocking = state.lane.lock?.by === "w" && state.lane.lock.index === by;
  const unlocked = isLocking ? withLane(state, { lock: undefined }) : state;
  take({ name: "its process is killed, and another begins", by, fair: true }, idleAgain(unlocked, by));
  const isOwner = state.lane.claim === claim;
  const isFree = state.lane.lock === undefined;
  if (phase === "claimed") {
    if (rules.handler === "outside") {
      const acted = withWorker(withTask(state, task, { isActed: true }), by, { phase: "handled" });
      take({ name: "acts outside", by, fair: true, told: "acted", task }, acted);
      if (bugs.endedBeforeActing === true && isFree && isOwner) end(turn, "handled");
    } else {
      take({ name: "its handler writes", by, fair: true }, withWorker(state, by, { phase: "handled" }));
    }
  }
  if ((phase === "claimed" || phase === "handled") && isFree) {
    if (isOwner) take({ name: "fails", by, fair: false }, failed(turn));
    else take({ name: "fails, and another has the task", by, fair: true }, idleAgain(state, by));
  }
  if (phase === "handled" && isFree) {
    if (isOwner || bugs.endedByAnyToken === true) end(turn, phase);
    else take({ name: "finish(): not its own; rolls back", by, fair: true }, idleAgain(state, by));
  }
  if (phase === "handled" && bugs.endedAlone === true) {
    const applied = withTask(state, task, { applied: counted(state.tasks[task]!) });
    const told = { told: "committed", task } as const;
    take(
      { name: "its effect commits alone", by, fair: true, ...told },
      withWorker(applied, by, { phase: "unsure" }),
    );
  }
  if (phase === "ending") commit(turn, unlocked);
  if (phase === "unsure") {
    take(
      { name: "nobody knows how its COMMIT ended; fails, unless it took effect", by, fair: true },
      idleAgain(isOwner && isFree ? failed(turn) : state, by),
    );
  }
}

function claims({ state, by, rules, take }: Turn): void {
  const { lane, tasks, workers } = state;
  const { bugs } = rules;
  const isDue = lane.claim === 0 || (lane.isExpired && bugs.expiredIgnored !== true);
  if (!lane.exists || lane.lock !== undefined || (!isDue && bugs.laneNotTaken !== true)) return;
  const heads = bugs.headNotOldest === true || bugs.laneNotTaken === true ? openOnes(state) : [headOf(state)];
  const mayRun = (task: number): boolean =>
    bugs.laneNotTaken !== true || workers.every((other) => other.phase === "idle" || other.task !== task);
  for (const task of heads.filter(mayRun)) {
    if (task === -1) {
      take(
        { name: "an empty lane is removed", by, fair: true },
        withLane(state, { exists: false, claim: 0 }),
      );
      continue;
    }
    const claim = Math.max(lane.claim, ...workers.map((worker) => worker.claim)) + 1;
    const { attempts } = tasks[task]!;
    const owned = withLane(state, { claim, isExpired: false });
    if (attempts >= rules.maxAttempts) {
      const dead = gone(withTask(owned, task, { state: "dead" }));
      take({ name: "claims a task whose attempts are used up: dead", by, fair: true }, dead);
      continue;
    }
    const counting = withTask(owned, task, { attempts: attempts + 1 });
    const after = withWorker(counting, by, { phase: "claimed", task, claim });
    take({ name: "claims the oldest open task", by, fair: true, told: "claimed", task }, after);
  }
}

function openOnes({ tasks }: WorkState): number[] {
  return tasks.flatMap(({ state }, index) => (state === "open" ? [index] : []));
}

/** Writes the end of the task, and locks the lane until COMMIT. */
function end({ state, by, take }: Turn, phase: "handled"): void {
  const locked = withLane(withWorker(state, by, { phase: "ending" }), { lock: { by: "w", index: by } });
  take({ name: phase === "handled" ? "finish(): its own" : "finish()", by, fair: true }, locked);
}

function commit({ state, by, rules, take }: Turn, unlocked: WorkState): void {
  const { task } = state.workers[by]!;
  const before = state.tasks[task]!;
  const applied = rules.handler === "inside" ? counted(before) : before.applied;
  const done = gone(withTask(unlocked, task, { state: "done", applied }));
  const told = { told: "committed", task } as const;
  take({ name: "COMMIT is answered: done", by, fair: true, ...told }, idleAgain(done, by));
  const lost = withWorker(done, by, { phase: "unsure" });
  take({ name: "COMMIT, and its answer is lost", by, fair: false, ...told }, lost);
  const undone = withWorker(unlocked, by, { phase: "unsure" });
  take({ name: "COMMIT does not arrive: rolled back", by, fair: false }, undone);
}

function counted({ applied }: Task): number {
  return Math.min(applied + 1, 2);
}

function failed({ state, by, rules }: Turn): WorkState {
  const { task } = state.workers[by]!;
  const isLast = state.tasks[task]!.attempts >= rules.maxAttempts;
  const idle = idleAgain(state, by);
  if (isLast) return gone(withTask(idle, task, { state: "dead" }));
  // With the bug the task goes behind its successors.
  const behind = rules.bugs.failureLetsGo === true ? { number: state.nextNumber } : {};
  const waiting = { ...withTask(idle, task, behind), nextNumber: state.nextNumber + 1 };
  return withLane(waiting, { claim: 0, isExpired: false });
}

/** The lane behind a task that has ended: it goes on, or goes. */
function gone(state: WorkState): WorkState {
  return withLane(state, { claim: 0, isExpired: false, exists: headOf(state) !== -1 });
}

function leaseEnds(state: WorkState, take: Take): void {
  const { lane } = state;
  if (lane.claim === 0 || lane.isExpired || lane.lock?.by === "w") return;
  take({ name: "the lease ends", fair: true }, withLane(state, { isExpired: true }));
}

function operate(state: WorkState, take: Take): void {
  if (state.retries >= mostRetries || state.lane.lock !== undefined) return;
  state.tasks.forEach((task, index) => {
    if (task.state !== "dead") return;
    const open = withTask(state, index, { state: "open", attempts: 0 });
    const after = withLane(open, { exists: true });
    take(
      { name: "an operator lets a dead task run again", fair: false },
      { ...after, retries: state.retries + 1 },
    );
  });
}
