import type {
  IdempotencyClaim,
  IdempotencyOwnership,
  IdempotencyRecord,
  KeptDecision,
} from "@countersign/idempotency";

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
  | {
      readonly op: "resolve";
      readonly key: string;
      readonly outcome: "done" | "released";
      /** The attempt that is decided about. */
      readonly fence: number;
    }
  | {
      /** A decision about the attempt with this fence is taken back. */
      readonly op: "reopen";
      readonly key: string;
      readonly fence: number;
    }
  | { readonly op: "read" | "readReleased"; readonly key: string };

export const leaseMs = 1_000;
export const retentionMs = 86_400_000;
export const holdReason = "in doubt";

/** The claim that a step makes: its fingerprint tells whose it is. */
export function claimOf({ token, recovery }: Extract<Step, { op: "claim" }>): IdempotencyClaim {
  return { token, fingerprint: `f-${token}`, leaseMs, recovery };
}

/** The fence in an answer, where there is one. */
export function fenceIn(answer: unknown): number | undefined {
  const fence = memberOf(answer, "fence");
  return typeof fence === "number" ? fence : undefined;
}

function memberOf(answer: unknown, name: string): unknown {
  return typeof answer === "object" && answer !== null ? Reflect.get(answer, name) : undefined;
}

interface Cell {
  /** `free`: absent, but for what an operator has decided. */
  state: IdempotencyRecord["state"] | "free";
  /** Undefined from a decision until an answer has shown it: any that is not the old owner's. */
  token: string | undefined;
  /** From whom an operator has taken the key. */
  formerToken: string | undefined;
  /** Undefined until an answer has shown it: fences are free but for their order. */
  fence: number | undefined;
  fingerprint: string;
  reason: string;
  decision: Decided | undefined;
  /** The end of the lease or of the retention: the first instant at which it has ended. */
  untilMs: number;
}

/** Without its fence: that of the cell when it was decided. */
type Decided = Omit<KeptDecision, "fence"> & { readonly fence: number | undefined };

/** Who decides, and who reopens. */
export const decider = { by: "anna", note: "\0" } as const;
export const reopener = { by: "ben", note: "\ud800" } as const;

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
   * Takes the step and gives the answer that a right store gives. `seen` is what the real store answered: its fence, and the token
   * that a decision left behind, are taken over where they may be, and are otherwise not in the answer.
   */
  apply(step: Step, seen?: unknown): unknown {
    const seenFence = fenceIn(seen);
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
        return step.ending === "commit" ? this.#end(step) : this.clone().#end(step);
      case "resolve":
        return this.#resolve(step);
      case "reopen":
        return this.#reopen(step);
      case "read":
        return this.#read(step.key, seen);
      case "readReleased":
        return this.#readReleased(step.key, seen);
      default:
        return step satisfies never;
    }
  }

  /** Forgets what has ended. Returns how many keys. */
  prune(): number {
    const ended = [...this.#cells].filter(([, cell]) => this.#hasRetired(cell));
    for (const [key] of ended) this.#cells.delete(key);
    return ended.filter(([, { state }]) => state === "done").length;
  }

  /** The state of a key as its record tells it. */
  stateOf(key: string): IdempotencyRecord["state"] | "absent" {
    const state = this.#live(key)?.state ?? "free";
    return state === "free" ? "absent" : state;
  }

  /** Whether anything is kept of a key, be it an operator's decision alone. */
  remembers(key: string): boolean {
    return this.#live(key) !== undefined;
  }

  #claim(step: Extract<Step, { op: "claim" }>, seenFence: number | undefined): unknown {
    const cell = this.#live(step.key);
    if (cell === undefined || cell.state === "free") return this.#take(step, seenFence);
    const { state, fingerprint, untilMs } = cell;
    if (state === "done") return { status: "done", fingerprint };
    if (state === "run" && cell.token === step.token) {
      cell.untilMs = this.nowMs + leaseMs;
      return { status: "acquired", fence: this.#learn(step.key, cell, seenFence) };
    }
    if (state === "run" && untilMs > this.nowMs) {
      // No more than one lease, also when the clock was set back.
      cell.untilMs = Math.min(untilMs, this.nowMs + leaseMs);
      return { status: "in-flight", fingerprint, remainingMs: cell.untilMs - this.nowMs };
    }
    if (state === "run" && step.recovery === "rerun") return this.#take(step, seenFence);
    if (state === "run") Object.assign(cell, { state: "held", reason: "lease-expired" });
    return { status: "held", fingerprint, reason: cell.reason };
  }

  #take(step: Extract<Step, { op: "claim" }>, seenFence: number | undefined): unknown {
    // An owner whose fence nobody ever saw had one all the same: whatever it was, the next one is only known to be higher.
    const { fingerprint, token } = claimOf(step);
    const untilMs = this.nowMs + leaseMs;
    const decision = this.#live(step.key)?.decision;
    const attempt = { token, formerToken: undefined, fence: undefined, fingerprint, decision };
    const cell: Cell = { state: "run", ...attempt, reason: "", untilMs };
    this.#cells.set(step.key, cell);
    return { status: "acquired", fence: this.#learn(step.key, cell, seenFence) };
  }

  #complete({ key, token }: { readonly key: string; readonly token: string }): IdempotencyOwnership {
    const cell = this.#live(key);
    if (cell?.state === "done") return cell.token === token ? "ok" : "lost";
    return this.#end({ key, token });
  }

  // With a payment beside it, never `ok` twice.
  #end(owned: { readonly key: string; readonly token: string }): IdempotencyOwnership {
    return this.#change(owned, ["run", "held"], { state: "done", untilMs: this.nowMs + retentionMs });
  }

  #release({ key, token }: { readonly key: string; readonly token: string }): IdempotencyOwnership {
    const untilMs = this.nowMs + retentionMs;
    const ownership = this.#change({ key, token }, ["run"], { state: "free", reason: "", untilMs });
    // Whoever released a key last, what an operator has decided about it stays.
    if (this.#cells.get(key)?.decision === undefined && ownership === "ok") this.#cells.delete(key);
    return ownership;
  }

  #resolve({ key, outcome, fence }: Extract<Step, { op: "resolve" }>): "ok" | "not-held" {
    const cell = this.#live(key);
    // Who decides has read the fence: one that no answer has shown is another one.
    if (cell === undefined || cell.fence !== fence) return "not-held";
    const isOpen = cell.state === "held" || (cell.state === "run" && cell.untilMs <= this.nowMs);
    if (!isOpen) return "not-held";
    const reason = cell.state === "held" ? cell.reason : "lease-expired";
    const decision: Decided = { outcome, fence, reason, at: this.nowMs, ...decider };
    const state = outcome === "done" ? "done" : "free";
    const untilMs = this.nowMs + retentionMs;
    Object.assign(cell, { state, token: undefined, formerToken: cell.token, reason: "", untilMs, decision });
    return "ok";
  }

  #reopen({ key, fence }: Extract<Step, { op: "reopen" }>): "ok" | "not-decided" {
    const cell = this.#live(key);
    const decision = cell?.decision;
    if (cell === undefined || decision === undefined) return "not-decided";
    // An attempt that has claimed the key since has a fence of its own; whether anybody has seen it or not.
    const isIts = cell.fence === fence && decision.fence === fence;
    if (!isIts || (cell.state !== "done" && cell.state !== "free")) return "not-decided";
    const reopened = { at: this.nowMs, ...reopener };
    const { reason } = decision;
    const token = { token: undefined, formerToken: cell.formerToken };
    Object.assign(cell, {
      state: "held",
      ...token,
      fence: undefined,
      reason,
      decision: { ...decision, reopened },
    });
    return "ok";
  }

  #read(key: string, seen: unknown): unknown {
    const cell = this.#live(key);
    if (cell === undefined || cell.state === "free") return undefined;
    const { state, fingerprint, reason, untilMs, decision } = cell;
    const fence = this.#learn(key, cell, fenceIn(seen));
    const token = learnToken(cell, memberOf(seen, "token"));
    const known = { token, fence, fingerprint, ...(decision === undefined ? {} : { decision }) };
    if (state === "run") return { state, ...known, remainingMs: untilMs - this.nowMs };
    return state === "held" ? { state, ...known, reason } : { state, ...known };
  }

  #readReleased(key: string, seen: unknown): unknown {
    const cell = this.#live(key);
    if (cell?.state !== "free") return undefined;
    const { state, fingerprint, decision } = cell;
    return { state, fence: this.#learn(key, cell, fenceIn(seen)), fingerprint, decision };
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
    return (state === "done" || state === "free") && untilMs <= this.nowMs;
  }
}

// The token of a decision is shown once for all, and is not the one of the attempt that was decided about.
function learnToken(cell: Cell, seen: unknown): string | undefined {
  if (cell.token === undefined && typeof seen === "string" && seen !== cell.formerToken) cell.token = seen;
  return cell.token;
}
