/** A bug that is put back into the transactions' machine. */
interface PlantedBug {
  readonly is: string;
  readonly in: string;
  /** The invariant that is the first to break. */
  readonly breaks: string;
}

/** What a step that is left out would do: "The state table" of decision 0069. */
export const transactionSwitches = {
  replayOverlooked: {
    is: "a refusal rolls all back, and does not look at who has its nonce behind that: a replay that waited on the nonce got in",
    in: "two requests",
    breaks: "I18",
  },
  lateStatement: {
    is: "a handler's tx stays open when it has failed: a statement that comes behind the rollback commits by itself",
    in: "two requests",
    breaks: "I26",
  },
  unansweredIgnored: {
    is: "a handler succeeds of which a statement is on its way: it fails behind that",
    in: "two requests",
    breaks: "I26",
  },
  doneFirst: {
    is: "a key is written as done before the handler runs: what commits too early makes it done, and nothing is paid",
    in: "beside a lease, under hold",
    breaks: "I29",
  },
  rerunOfTransaction: {
    is: "an expired run of a transaction is taken over under rerun, whatever its row says: what broke it may have paid",
    in: "beside a lease, under rerun",
    breaks: "I7",
  },
  leaseTooShort: {
    is: "a transaction's lease ends while its handler can still write: an operator decides about a key that is about to be paid",
    in: "beside a lease, under hold",
    breaks: "I1",
  },
  heldNotAsked: {
    is: "nobody asks after a rollback whether something has committed: a refusal is for good, and paid",
    in: "two requests",
    breaks: "I27",
  },
  nothingWrittenCommits: {
    is: "a handler that has changed no row commits all the same",
    in: "two requests",
    breaks: "I28",
  },
  refusedWithoutNonce: {
    is: "a refusal whose transaction is gone is told although its nonce is free: a replay is paid",
    in: "two requests",
    breaks: "I18",
  },
  noLastStatement: {
    is: "nothing asks whether the transaction still works: an error that was swallowed is a 2xx without a payment",
    in: "two requests",
    breaks: "I16",
  },
  commitNotAsked: {
    is: "COMMIT is taken for one whatever the server has made of it: a late statement that failed is a 2xx without a payment",
    in: "two requests",
    breaks: "I16",
  },
  expiredIgnored: {
    is: "an expired run is in flight for ever, also when nobody keeps leases any more",
    in: "leases given up, under rerun",
    breaks: "I3",
  },
  deadlockSwallowed: {
    is: "MariaDB's 1213 ends the whole transaction, nobody reads the key back, and the payment commits alone",
    in: "a deadlock ends all",
    breaks: "I17",
  },
  autocommitOn: {
    is: "behind 1213 each statement commits by itself: the key is read back too late",
    in: "a deadlock ends all",
    breaks: "I17",
  },
  absentKeyFree: {
    is: "behind 1213 or a handler's own ROLLBACK the key is gone, and stays free: what the handler committed by itself is paid again",
    in: "a deadlock ends all",
    breaks: "I1",
  },
  doneTakenOver: {
    is: "a key that is done, and remembered, is taken as if it were free",
    in: "two requests",
    breaks: "I7",
  },
  rowNotLocked: {
    is: "begin() takes no lock: two transactions begin one key",
    in: "two requests",
    breaks: "I7",
  },
  claimBeforeLock: {
    is: "a claim of lease mode decides before it waits for the lock of the row, and takes what was paid meanwhile",
    in: "beside a lease, under hold",
    breaks: "I7",
  },
  commitRepeated: {
    is: "COMMIT is sent again behind a lost reply: without a transaction it is ok, and nothing was committed",
    in: "two requests",
    breaks: "I16",
  },
  uncommittedRead: {
    is: "a duplicate is answered by a read that sees open transactions",
    in: "two requests",
    breaks: "I2",
  },
  idleForEver: {
    is: "the server keeps the transaction of a process that is gone or stands still, and with it the lock",
    in: "two requests",
    breaks: "I3",
  },
  pruningForgetsFences: {
    is: "a pruned key begins with the first fence again",
    in: "beside a lease, under rerun",
    breaks: "I8",
  },
} as const satisfies Readonly<Record<string, PlantedBug>>;

export type TransactionSwitch = keyof typeof transactionSwitches;
