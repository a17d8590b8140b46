/** A bug that is put back into the machine. Both names are checked where the machine's test uses them. */
interface PlantedBug {
  /** What has to go wrong beside it. */
  readonly beside?: "operatorLooksAway";
  /** What goes wrong, in the words of whoever finds it. */
  readonly is: string;
  readonly in: string;
  /** The invariant that names it, which is the first to break; and what else it breaks, each found when asked for alone. */
  readonly breaks: readonly [string, ...string[]];
}

/** What earlier versions did, what earlier reviews found, what the stores that fail the contract do, and what handlers and operators must not do. */
export const switches = {
  // Ending a key.
  resolveKeepsToken: {
    is: "resolve() leaves the owner its token: what an operator has done looks like the owner's own end",
    in: "a call of the bank, under hold",
    breaks: ["I10"],
  },
  answerBeforeDone: {
    is: "a 2xx leaves before done is durable",
    in: "a call of the bank, under hold",
    breaks: ["I4"],
  },
  inFlightIs409: {
    is: "a key in flight is answered 409, as in the IETF draft",
    in: "an idempotent call, under rerun",
    breaks: ["I2"],
  },
  doneEvicted: {
    is: "a done record is pruned or evicted while retries come",
    in: "a call of the bank, under hold",
    breaks: ["I10", "I1"],
  },
  completeOfAnyToken: {
    is: "complete() of an attempt that has lost the key is ok",
    in: "a call of the bank, under hold",
    breaks: ["I6"],
  },
  // Giving the first answer again.
  unansweredRunsAgain: {
    is: "a done key whose answer cannot be found is claimed as if it were free",
    in: "answers given again, a call of the bank, under hold",
    breaks: ["I7", "I10", "I15", "I1"],
  },
  answerByKey: {
    is: "answers are kept under the key: that of an attempt whose record never came is given for what another one ended",
    in: "answers given again, a call of the bank, under hold",
    breaks: ["I15"],
  },
  answerKeptLast: {
    is: "the answer is kept behind the record: whoever reads done in between finds none, and a crash leaves none",
    in: "answers given again, a call of the bank, under hold",
    breaks: ["I15"],
  },
  answerOfAnyState: {
    is: "an answer is given again without a look at the state: its record may never come",
    in: "answers given again, a call of the bank, under hold",
    breaks: ["I15"],
  },
  // Giving a key back.
  releaseOfAnyToken: {
    is: "release() does not compare the token: a late one frees the run of the next owner",
    in: "a call of the bank, under hold",
    breaks: ["I6", "I9", "I1"],
  },
  holdOfAnyToken: {
    is: "hold() does not compare the token",
    in: "a call of the bank, under hold",
    breaks: ["I6"],
  },
  freedWhileWorking: {
    is: "under hold the key is freed when somebody else answers for a handler that works on",
    in: "a call of the bank, under hold",
    breaks: ["I9", "I1"],
  },
  timeOutIsTheHandlers: {
    is: "a time-out behind the guard counts as the handler, and frees the key while that works on",
    in: "a call of the bank, under hold",
    breaks: ["I9", "I1"],
  },
  lateSuccessFrees: {
    is: "a handler succeeds behind the answer of a time-out, and its key is freed",
    in: "a call of the bank, under hold",
    breaks: ["I9", "I1"],
  },
  holdForgotten: {
    is: "a handler that may have paid throws, and its key is freed",
    in: "a call of the bank, under hold",
    breaks: ["I9", "I1"],
  },
  signalNotAborted: {
    is: "the key is given back while the handler works and its signal says nothing",
    in: "a call of the bank, under hold",
    breaks: ["I11"],
  },
  claimNotAbandoned: {
    is: "a claim without an answer is not released: the list of releases was full",
    in: "a call of the bank, under hold",
    breaks: ["I13"],
  },
  abandonGivesUp: {
    is: "the release of a claim ends at the first `lost`, and the claim is executed after it",
    in: "a call of the bank, under hold",
    breaks: ["I13"],
  },
  // Taking a key.
  claimForgetsItself: {
    is: "a claim that is sent twice is refused for its own run",
    in: "a call of the bank, under hold",
    breaks: ["I13"],
  },
  lateReplyUsed: {
    is: "a handler begins by a reply that was under way for longer than the lease",
    in: "a call of the bank, under hold",
    breaks: ["I12", "I9", "I1"],
  },
  abandonedReplyUsed: {
    is: "a handler begins by an answer that came after the guard gave the claim up, and the release goes on",
    in: "an idempotent call, under rerun",
    breaks: ["I12", "I11"],
  },
  claimInTwoSteps: {
    is: "a claim looks first and writes later",
    in: "a call of the bank, under hold",
    breaks: ["I7", "I9", "I1"],
  },
  takeoverOfLiveRun: {
    is: "a takeover does not compare the lease",
    in: "an idempotent call, under rerun",
    breaks: ["I7"],
  },
  rerunUnderHold: {
    is: "an expired run is taken over although recovery is hold",
    in: "a call of the bank, under hold",
    breaks: ["I7", "I9", "I1"],
  },
  runVanishes: {
    is: "a run goes with its lease, as if it had never been",
    in: "a call of the bank, under hold",
    breaks: ["I9", "I1"],
  },
  heartbeatOfAnyToken: {
    is: "a heartbeat renews the run of another token",
    in: "an idempotent call, under rerun",
    breaks: ["I6"],
  },
  fencesGoBack: {
    is: "fences go back after a failover, or come from a sequence with a cache",
    in: "a call of the bank, under hold",
    breaks: ["I8", "I14", "I1"],
  },
  // Waiting for nothing.
  clockSetBack: {
    is: "a clock that was set back keeps the lease of a dead owner",
    in: "an idempotent call, under rerun",
    breaks: ["I3"],
  },
  // Deciding.
  resolveWithoutFence: {
    is: "a decision about one attempt is executed on the next one",
    in: "a call of the bank, under hold",
    breaks: ["I14", "I1"],
  },
  resolveOfLiveRun: {
    is: "resolve() ends a run whose owner renews its lease",
    in: "an idempotent call, under rerun",
    breaks: ["I14"],
  },
  reopenOfOwnDone: {
    is: "reopen() takes back what an attempt has done",
    in: "a call of the bank, under hold",
    breaks: ["I10"],
  },
  reopenWithoutFence: {
    is: "reopen() takes a released key from the attempt that has claimed it since",
    in: "a call of the bank, under hold",
    breaks: ["I14", "I9"],
  },
  reopenKeepsFence: {
    is: "reopen() leaves the key its fence: a decision that is delivered once more decides anew",
    in: "a call of the bank, under hold",
    breaks: ["I14"],
  },
  reopenRevivesToken: {
    is: "reopen() gives the key back to its old owner, who pays behind an operator that has paid by hand",
    in: "a call of the bank, under hold",
    breaks: ["I9", "I1"],
  },
  lostSuccessForgotten: {
    is: "an operator has freed a key whose handler still called the bank, and the attempt that hears it leaves the key free",
    in: "a call of the bank, under hold",
    beside: "operatorLooksAway",
    breaks: ["I25"],
  },
  // What code cannot prevent: the rules for handlers and operators.
  handlerAnswersFirst: {
    is: "a handler answers 2xx, and calls the bank when the key is done",
    in: "an idempotent call, under rerun",
    breaks: ["I2"],
  },
  handlerIgnoresSignal: {
    is: "a handler calls the bank although its signal has aborted, and an operator relied on that",
    in: "a call of the bank, under hold",
    breaks: ["I1"],
  },
  operatorPaysFirst: {
    is: "an operator pays by hand before resolve() was ok, and the owner wakes up in between",
    in: "a call of the bank, under hold",
    breaks: ["I9", "I1"],
  },
  operatorLooksAway: {
    is: "an operator frees a key whose handler still may call the bank",
    in: "a call of the bank, under hold",
    breaks: ["I1"],
  },
} as const satisfies Readonly<Record<string, PlantedBug>>;

export type Switch = keyof typeof switches;
