import { Gate, textUpTo, type ArgumentRule } from "../../store-parts/index.ts";
import type {
  DeadTasks,
  NewestMark,
  NewTask,
  OwnedTask,
  TaskClaim,
  TaskFailure,
  TaskQuery,
  WorkDecision,
} from "../work-store.ts";

const integerIn = (min: number, max: number): ArgumentRule => ({
  isFit: (value) => typeof value === "number" && Number.isSafeInteger(value) && value >= min && value <= max,
  form: `an integer from ${min} to ${max}`,
});

const maxBodyBytes = 1_048_576;
const maxDelayMs = 365 * 86_400_000;
// The years 0 to 9999.
const [firstNanosecond, lastNanosecond] = [-62_167_219_200_000_000_000n, 253_402_300_799_999_999_999n];

const rules = {
  queue: {
    isFit: (value) => typeof value === "string" && /^[a-z0-9-]{1,64}$/.test(value),
    form: "1 to 64 of a-z, 0-9 and -",
  },
  id: textUpTo(512),
  entity: textUpTo(512),
  token: textUpTo(512),
  scope: textUpTo(128),
  subject: textUpTo(512),
  by: textUpTo(128),
  note: textUpTo(512),
  reason: textUpTo(2_000),
  body: {
    isFit: (value) => typeof value === "string" && Buffer.byteLength(value) <= maxBodyBytes,
    form: "a string of at most 1 MiB",
  },
  at: {
    isFit: (value) => typeof value === "bigint" && value >= firstNanosecond && value <= lastNanosecond,
    form: "nanoseconds since 1970 as a bigint, in the years 0 to 9999",
  },
  state: {
    isFit: (value) => value === "open" || value === "dead" || value === "done",
    form: '"open", "dead" or "done"',
  },
  delayMs: integerIn(0, maxDelayMs),
  retryInMs: integerIn(0, maxDelayMs),
  leaseMs: integerIn(1, maxDelayMs),
  deadSinceMs: integerIn(0, Number.MAX_SAFE_INTEGER),
  claimLimit: integerIn(1, 100),
  limit: integerIn(1, 1_000),
} satisfies Readonly<Record<string, ArgumentRule>>;

/** Guards every step of a work store. Methods throw an Error once it is closed, a TypeError for unfit arguments. */
export class WorkGate extends Gate<keyof typeof rules> {
  /** `store` begins messages; `assertEngine` throws while the engine must not be used. */
  constructor(store: string, assertEngine: () => void = () => {}) {
    super(store, rules, assertEngine);
  }

  /** For a step in the caller's transaction. */
  assertAdd(queue: unknown, tasks: readonly NewTask[]): void {
    this.assertOpen();
    this.assertArguments({ queue });
    for (const { id, entity, body, delayMs = 0 } of tasks) {
      this.assertArguments({ id, body, delayMs, ...(entity === undefined ? {} : { entity }) });
    }
    if (new Set(tasks.map(({ id }) => id)).size < tasks.length) {
      throw new TypeError(`${this.store}: the ids of tasks that are added together must differ`);
    }
  }

  /** For a step in the caller's transaction. */
  assertAdvance({ scope, subject, at }: NewestMark): void {
    this.assertOpen();
    this.assertArguments({ scope, subject, at });
  }

  /** For a step in the caller's transaction. */
  assertOwnerIn({ queue, id, token }: OwnedTask): void {
    this.assertOpen();
    this.assertArguments({ queue, id, token });
  }

  assertClaim({ queue, limit, token, leaseMs }: TaskClaim): void {
    this.assertUsable();
    this.assertArguments({ queue, claimLimit: limit, token, leaseMs });
  }

  assertExtend(tasks: readonly OwnedTask[], leaseMs: number): void {
    this.assertUsable();
    this.assertArguments({ leaseMs });
    for (const task of tasks) this.assertOwnerIn(task);
  }

  assertFail(task: OwnedTask, { reason, retryInMs }: TaskFailure): void {
    this.assertUsable();
    this.assertOwnerIn(task);
    this.assertArguments({ reason, ...(retryInMs === undefined ? {} : { retryInMs }) });
  }

  assertGiveBack(tasks: readonly OwnedTask[], delayMs: number): void {
    this.assertUsable();
    this.assertArguments({ delayMs });
    for (const task of tasks) this.assertOwnerIn(task);
  }

  assertRead(queue: unknown, id: unknown): void {
    this.assertUsable();
    this.assertArguments({ queue, id });
  }

  assertList({ queue, state, limit }: TaskQuery): void {
    this.assertUsable();
    this.assertArguments({ queue, limit, ...(state === undefined ? {} : { state }) });
  }

  assertRetry(queue: unknown, which: DeadTasks): void {
    this.assertUsable();
    this.assertArguments({ queue });
    if ("ids" in which) for (const id of which.ids) this.assertArguments({ id });
    else this.assertArguments({ deadSinceMs: which.deadSinceMs });
  }

  assertDiscard(queue: unknown, ids: readonly unknown[], decision: WorkDecision): void {
    this.assertPause(queue, decision);
    for (const id of ids) this.assertArguments({ id });
  }

  assertPause(queue: unknown, { by, note }: WorkDecision): void {
    this.assertUsable();
    this.assertArguments({ queue, by, note });
  }

  assertResume(queue: unknown): void {
    this.assertUsable();
    this.assertArguments({ queue });
  }
}
