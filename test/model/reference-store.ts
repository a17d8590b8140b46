import type {
  IdempotencyClaim,
  IdempotencyOwnership,
  IdempotencyRecord,
} from "@countersign/idempotency-guard";

/** One step of a store, as data, so that a run can be printed, shrunk, and tried on the reference in another order. */
export type Step =
  | {
      readonly op: "claim";
      readonly key: string;
      readonly token: string;
      readonly recovery: "hold" | "rerun";
    }
  | {
      readonly op: "heartbeat" | "complete" | "release" | "hold";
      readonly key: string;
      readonly token: string;
    }
  | {
      /** A transaction that pays and completes the key: committed, rolled back, or cut off by the death of its process. */
      readonly op: "pay";
      readonly key: string;
      readonly token: string;
      readonly ending: "commit" | "rollback" | "crash";
    }
  | { readonly op: "resolve"; readonly key: string; readonly outcome: "done" | "released" }
  | { readonly op: "read"; readonly key: string };

export const leaseMs = 1_000;
export const retentionMs = 86_400_000;
export const holdReason = "in doubt";

/** The claim that a step makes: its fingerprint tells whose it is. */
export function claimOf({ token, recovery }: Extract<Step, { op: "claim" }>): IdempotencyClaim {
  return { token, fingerprint: `f-${token}`, leaseMs, recovery };
}

/** The fence in an answer, where there is one. */
export function fenceIn(answer: unknown): number | undefined {
  const fence: unknown =
    typeof answer === "object" && answer !== null ? Reflect.get(answer, "fence") : undefined;
  return typeof fence === "number" ? fence : undefined;
}

interface Cell {
  state: IdempotencyRecord["state"];
  token: string;
  /** Undefined until an answer has shown it: fences are free but for their order. */
  fence: number | undefined;
  fingerprint: string;
  reason: string;
  /** The end of the lease or of the retention: the first instant at which it has ended. */
  untilMs: number;
}

/** The state machine of the store contract, written down as plainly as possible. */
export class ReferenceStore {
  nowMs: number;
  readonly #cells = new Map<string, Cell>();
  readonly #highestFences = new Map<string, number>();

  constructor(nowMs: number) {
    this.nowMs = nowMs;
  }

  clone(): ReferenceStore {
    const copy = new ReferenceStore(this.nowMs);
    for (const [key, cell] of this.#cells) copy.#cells.set(key, { ...cell });
    for (const [key, fence] of this.#highestFences) copy.#highestFences.set(key, fence);
    return copy;
  }

  /**
   * Takes the step and gives the answer that a right store gives. `seenFence` is the fence that the real store showed: it is
   * taken over where it may be, and is otherwise not in the answer.
   */
  apply(step: Step, seenFence?: number): unknown {
    switch (step.op) {
      case "claim":
        return this.#claim(step, seenFence);
      case "heartbeat":
        return this.#change(step, ["run"], { untilMs: this.nowMs + leaseMs });
      case "complete":
        return this.#complete(step);
      case "release":
        return this.#release(step);
      case "hold":
        return this.#change(step, ["run"], { state: "held", reason: holdReason });
      case "pay":
        return step.ending === "commit" ? this.#complete(step) : this.clone().#complete(step);
      case "resolve":
        return this.#resolve(step.key, step.outcome);
      case "read":
        return this.#read(step.key, seenFence);
      default:
        return step satisfies never;
    }
  }

  /** Forgets what has ended. Returns how many keys. */
  prune(): number {
    const ended = [...this.#cells].filter(([, cell]) => this.#hasRetired(cell));
    for (const [key] of ended) this.#cells.delete(key);
    return ended.length;
  }

  /** The state of a key as its record tells it. */
  stateOf(key: string): IdempotencyRecord["state"] | "absent" {
    return this.#live(key)?.state ?? "absent";
  }

  #claim(step: Extract<Step, { op: "claim" }>, seenFence: number | undefined): unknown {
    const cell = this.#live(step.key);
    if (cell === undefined) return this.#take(step, seenFence);
    const { state, fingerprint, untilMs } = cell;
    if (state === "done") return { status: "done", fingerprint };
    if (state === "run" && cell.token === step.token) {
      cell.untilMs = this.nowMs + leaseMs;
      return { status: "acquired", fence: this.#learn(step.key, cell, seenFence) };
    }
    if (state === "run" && untilMs > this.nowMs) {
      return { status: "in-flight", fingerprint, remainingMs: untilMs - this.nowMs };
    }
    if (state === "run" && step.recovery === "rerun") return this.#take(step, seenFence);
    if (state === "run") Object.assign(cell, { state: "held", reason: "lease-expired" });
    return { status: "held", fingerprint, reason: cell.reason };
  }

  #take(step: Extract<Step, { op: "claim" }>, seenFence: number | undefined): unknown {
    // An owner whose fence nobody ever saw had one all the same: whatever it was, the next one is only known to be higher.
    const { fingerprint, token } = claimOf(step);
    const untilMs = this.nowMs + leaseMs;
    const cell: Cell = { state: "run", token, fence: undefined, fingerprint, reason: "", untilMs };
    this.#cells.set(step.key, cell);
    return { status: "acquired", fence: this.#learn(step.key, cell, seenFence) };
  }

  #complete({ key, token }: { readonly key: string; readonly token: string }): IdempotencyOwnership {
    const cell = this.#live(key);
    if (cell?.state === "done") return cell.token === token ? "ok" : "lost";
    return this.#change({ key, token }, ["run", "held"], {
      state: "done",
      untilMs: this.nowMs + retentionMs,
    });
  }

  #release({ key, token }: { readonly key: string; readonly token: string }): IdempotencyOwnership {
    const ownership = this.#change({ key, token }, ["run"], {});
    if (ownership === "ok") this.#cells.delete(key);
    return ownership;
  }

  #resolve(key: string, outcome: "done" | "released"): "ok" | "not-held" {
    const cell = this.#live(key);
    const isOpen =
      cell?.state === "held" || (cell?.state === "run" && cell.untilMs <= this.nowMs) ? cell : undefined;
    if (isOpen === undefined) return "not-held";
    if (outcome === "released") this.#cells.delete(key);
    else Object.assign(isOpen, { state: "done", untilMs: this.nowMs + retentionMs });
    return "ok";
  }

  #read(key: string, seenFence: number | undefined): unknown {
    const cell = this.#live(key);
    if (cell === undefined) return undefined;
    const { state, token, fingerprint, reason, untilMs } = cell;
    const fence = this.#learn(key, cell, seenFence);
    if (state === "run") return { state, token, fence, fingerprint, remainingMs: untilMs - this.nowMs };
    return state === "held"
      ? { state, token, fence, fingerprint, reason }
      : { state, token, fence, fingerprint };
  }

  #change(
    { key, token }: { readonly key: string; readonly token: string },
    from: readonly Cell["state"][],
    change: Partial<Cell>,
  ): IdempotencyOwnership {
    const cell = this.#live(key);
    if (cell === undefined || cell.token !== token || !from.includes(cell.state)) return "lost";
    Object.assign(cell, change);
    return "ok";
  }

  // The fence of an owner is shown once for all, and lies above that of each earlier owner of the key.
  #learn(key: string, cell: Cell, seenFence: number | undefined): number | undefined {
    if (cell.fence !== undefined || seenFence === undefined) return cell.fence;
    const highest = this.#highestFences.get(key) ?? 0;
    if (seenFence <= highest) return highest + 1;
    this.#highestFences.set(key, seenFence);
    cell.fence = seenFence;
    return seenFence;
  }

  #live(key: string): Cell | undefined {
    const cell = this.#cells.get(key);
    return cell === undefined || this.#hasRetired(cell) ? undefined : cell;
  }

  #hasRetired({ state, untilMs }: Cell): boolean {
    return state === "done" && untilMs <= this.nowMs;
  }
}
