interface PlantedBug {
  readonly is: string;
  readonly in: string;
  /** The invariant that is the first to break. */
  readonly breaks: string;
}

/** What a step of the table of work that is left out would do. */
export const workSwitches = {
  addedAlone: {
    is: "a task commits by itself, and not with its cause",
    in: "two tasks, inside",
    breaks: "I19",
  },
  acknowledgedEarly: {
    is: "whoever caused a task is told so before COMMIT was answered",
    in: "two tasks, inside",
    breaks: "I23",
  },
  endedByAnyToken: {
    is: "the end of a task does not compare the claim: a worker that lost it applies it once more",
    in: "two tasks, inside",
    breaks: "I20",
  },
  endedAlone: {
    is: "the effect commits, then another transaction ends the task: a crash between repeats it",
    in: "two tasks, inside",
    breaks: "I20",
  },
  headNotOldest: {
    is: "a claim takes any open task of the entity, not its oldest",
    in: "two tasks, inside",
    breaks: "I21",
  },
  laneNotTaken: {
    is: "a claim leaves the entity to others, and only the task is taken",
    in: "two tasks, inside",
    breaks: "I21",
  },
  failureLetsGo: {
    is: "a task that failed waits for its next attempt, and its successors do not wait for it",
    in: "two tasks, inside",
    breaks: "I21",
  },
  laneSeen: {
    is: "whoever adds sees the entity's lane and does not lock it: the end of the last task takes the lane away",
    in: "two tasks, inside",
    breaks: "I22",
  },
  expiredIgnored: {
    is: "a task whose owner fell silent is claimed by nobody",
    in: "two tasks, inside",
    breaks: "I22",
  },
  endedBeforeActing: {
    is: "a task that acts outside is ended before its worker acts",
    in: "two tasks, outside",
    breaks: "I24",
  },
} as const satisfies Readonly<Record<string, PlantedBug>>;

export type WorkSwitch = keyof typeof workSwitches;
