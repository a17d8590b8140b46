import type {
  IdempotencyClaim,
  IdempotencyOwnership,
  IdempotencyRecord,
  ReleasedKey,
} from "@countersign/idempotency";
import { type Step, claimOf, fenceIn, memberOf } from "./step.ts";

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
  recovery: IdempotencyClaim["recovery"];
  decision: Decided | undefined;
  /** The end of the lease or of the retention: the first instant at which it has ended. */
  untilMs: number;
}

/** Without its fence: that of the cell when it was decided. Times are the reference's. */
type OperatorEntry = Pick<ReleasedKey["decision"], "at" | "by" | "note">;
type Decided = Omit<ReleasedKey["decision"], "fence"> & { readonly fence: number | undefined };

const year2000Ms = 946_684_800_000;
const year2100Ms = 4_102_444_800_000;

/** The state machine of the store contract, written down as plainly as possible. */
export class ReferenceStore {
  /** Milliseconds since the reference began. */
  nowMs = 0;
  readonly #cells = new Map<string, Cell>();
  readonly #highestFences = new Map<string, number>();
  /** What the store's clock showed when the reference began; undefined until an answer has shown it. */
  #beganAt: number | undefined;

  readonly #retentionMs: number;
  readonly #isExact: boolean;

  /** Unless `isExact`, time passes on the store's clock by itself: what remains of a lease is only bounded then. */
  constructor({ retentionMs, isExact = true }: { readonly retentionMs: number; readonly isExact?: boolean }) {
    this.#retentionMs = retentionMs;
    this.#isExact = isExact;
  }

  clone(): ReferenceStore {
    const copy = new ReferenceStore({ retentionMs: this.#retentionMs, isExact: this.#isExact });
    copy.nowMs = this.nowMs;
    copy.#beganAt = this.#beganAt;
    for (const [key, cell] of this.#cells) copy.#cells.set(key, { ...cell });
    for (const [key, fence] of this.#highestFences) copy.#highestFences.set(key, fence);
    return copy;
  }

  /**
   * Takes the step and answers as a right store does. From `seen`, the real store's answer, it adopts the fence, the times and the token
   * of a decision where they may be so; otherwise they are not in the answer.
   */
  apply(step: Step, seen?: unknown): unknown {
    switch (step.op) {
      case "claim":
        return this.#claim(step, seen);
      case "heartbeat":
        return this.#change(step, ["running"], { untilMs: this.nowMs + step.leaseMs });
      case "complete":
        return this.#complete(step);
      case "release":
        return this.#release(step);
      case "hold":
        return this.#change(step, ["running"], { state: "held", reason: step.reason });
      case "resolve":
        return this.#resolve(step);
      case "reopen":
        return this.#reopen(step);
      case "read":
      case "readReleased":
        return this.#look(step, seen);
      default:
        return step satisfies never;
    }
  }

  prune(): number {
    const ended = [...this.#cells].filter(([, cell]) => this.#hasRetired(cell));
    for (const [key] of ended) this.#cells.delete(key);
    return ended.filter(([, { state }]) => state === "done").length;
  }

  stateOf(key: string): IdempotencyRecord["state"] | "absent" {
    const state = this.#live(key)?.state ?? "free";
    return state === "free" ? "absent" : state;
  }

  /** The token that has, or last had, the key; undefined where no answer has shown it. */
  ownerOf(key: string): string | undefined {
    return this.#live(key)?.token;
  }

  /** In how many milliseconds the key's lease or retention ends; undefined when nothing is kept of it. */
  endsInMs(key: string): number | undefined {
    const cell = this.#live(key);
    return cell && cell.untilMs - this.nowMs;
  }

  #claim(step: Extract<Step, { op: "claim" }>, seen: unknown): unknown {
    const { key, leaseMs } = step;
    const cell = this.#live(key);
    if (cell === undefined || cell.state === "free") return this.#take(step, seen);
    const { state, fingerprint, untilMs } = cell;
    if (state === "done") return { status: "done", fingerprint };
    if (state === "running" && cell.token === step.token) {
      cell.untilMs = this.nowMs + leaseMs;
      return { status: "acquired", fence: this.#learn(key, cell, fenceIn(seen)) };
    }
    if (state === "running" && untilMs > this.nowMs) {
      // No more than one lease, also when the clock was set back.
      cell.untilMs = Math.min(untilMs, this.nowMs + leaseMs);
      return { status: "in-flight", fingerprint, remainingMs: this.#remaining(cell, seen) };
    }
    if (state === "running" && cell.recovery === "rerun" && step.recovery === "rerun")
      return this.#take(step, seen);
    if (state === "running") Object.assign(cell, { state: "held", reason: "lease-expired" });
    return { status: "held", fingerprint, reason: cell.reason };
  }

  #take(step: Extract<Step, { op: "claim" }>, seen: unknown): unknown {
    // An owner whose fence nobody ever saw had one all the same: whatever it was, the next one is only known to be higher.
    const { fingerprint, token, recovery } = claimOf(step);
    const untilMs = this.nowMs + step.leaseMs;
    const decision = this.#live(step.key)?.decision;
    const attempt = { token, formerToken: undefined, fence: undefined, fingerprint, decision };
    const cell: Cell = { state: "running", ...attempt, reason: "", recovery, untilMs };
    this.#cells.set(step.key, cell);
    return { status: "acquired", fence: this.#learn(step.key, cell, fenceIn(seen)) };
  }

  #complete({ key, token }: { readonly key: string; readonly token: string }): IdempotencyOwnership {
    const cell = this.#live(key);
    if (cell?.state === "done") return cell.token === token ? "ok" : "lost";
    return this.#change({ key, token }, ["running", "held"], {
      state: "done",
      untilMs: this.nowMs + this.#retentionMs,
    });
  }

  #release({ key, token }: { readonly key: string; readonly token: string }): IdempotencyOwnership {
    const untilMs = this.nowMs + this.#retentionMs;
    const ownership = this.#change({ key, token }, ["running"], { state: "free", reason: "", untilMs });
    // Whoever released a key last, what an operator has decided about it stays.
    if (this.#cells.get(key)?.decision === undefined && ownership === "ok") this.#cells.delete(key);
    return ownership;
  }

  #resolve({ key, outcome, fence, by, note }: Extract<Step, { op: "resolve" }>): "ok" | "not-held" {
    const cell = this.#live(key);
    // Who decides has read the fence: one that no answer has shown is another one.
    if (cell === undefined || cell.fence !== fence) return "not-held";
    const isOpen = cell.state === "held" || (cell.state === "running" && cell.untilMs <= this.nowMs);
    if (!isOpen) return "not-held";
    const reason = cell.state === "held" ? cell.reason : "lease-expired";
    const decision: Decided = { outcome, fence, reason, ...this.#entry({ by, note }) };
    const state = outcome === "done" ? "done" : "free";
    const untilMs = this.nowMs + this.#retentionMs;
    Object.assign(cell, { state, token: undefined, formerToken: cell.token, reason: "", untilMs, decision });
    return "ok";
  }

  #reopen({ key, fence, by, note }: Extract<Step, { op: "reopen" }>): "ok" | "not-decided" {
    const cell = this.#live(key);
    const decision = cell?.decision;
    if (cell === undefined || decision === undefined) return "not-decided";
    // An attempt that has claimed the key since has a fence of its own; whether anybody has seen it or not.
    const isIts = cell.fence === fence && decision.fence === fence;
    if (!isIts || (cell.state !== "done" && cell.state !== "free")) return "not-decided";
    const reopened = this.#entry({ by, note });
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

  #look({ op, key }: { readonly op: "read" | "readReleased"; readonly key: string }, seen: unknown): unknown {
    const cell = this.#live(key);
    if (cell === undefined || (cell.state === "free") !== (op === "readReleased")) return undefined;
    const { state, fingerprint, reason } = cell;
    const decision = this.#decisionOf(cell, seen);
    if (state === "free" && decision === undefined) return undefined;
    const fence = this.#learn(key, cell, fenceIn(seen));
    const known = { state, fence, fingerprint, ...(decision === undefined ? {} : { decision }) };
    if (state === "free") return known;
    const owned = { ...known, token: learnToken(cell, memberOf(seen, "token")) };
    if (state === "running") return { ...owned, remainingMs: this.#remaining(cell, seen) };
    return state === "held" ? { ...owned, reason } : owned;
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

  #entry({ by, note }: Omit<OperatorEntry, "at">): OperatorEntry {
    const at = this.nowMs;
    return { at, ...(by === undefined ? {} : { by }), ...(note === undefined ? {} : { note }) };
  }

  #decisionOf({ decision }: Cell, seen: unknown): unknown {
    if (decision === undefined) return undefined;
    const shown = memberOf(seen, "decision");
    const { reopened, ...decided } = this.#dated(decision, shown);
    if (reopened === undefined) return decided;
    const again = this.#dated(reopened, memberOf(shown, "reopened"));
    return {
      ...decided,
      reopened: again.at >= decided.at || this.#isExact ? again : { ...again, at: decided.at },
    };
  }

  // The first instant that is shown tells when the clock began. Of a clock that nobody moves it is only known to be of this century.
  #dated<Entry extends OperatorEntry>(entry: Entry, shown: unknown): Entry {
    const at = memberOf(shown, "at");
    const isInstant = Number.isSafeInteger(at) && Number(at) > year2000Ms && Number(at) < year2100Ms;
    if (!this.#isExact) return { ...entry, at: isInstant ? Number(at) : year2000Ms };
    if (isInstant) this.#beganAt ??= Number(at) - entry.at;
    return { ...entry, at: entry.at + (this.#beganAt ?? 0) };
  }

  // Time passes by itself on a clock that nobody moves: less may remain of a live lease, and less than nothing of an expired one.
  #remaining({ untilMs }: Cell, seen: unknown): number {
    const remainingMs = untilMs - this.nowMs;
    const shown = memberOf(seen, "remainingMs");
    if (this.#isExact || typeof shown !== "number") return remainingMs;
    const isRight = remainingMs > 0 ? shown > 0 && shown <= remainingMs : shown <= 0;
    return isRight ? shown : remainingMs;
  }

  // The fence of an owner is shown once for all, and lies above that of each earlier owner of the key.
  #learn(key: string, cell: Cell, seenFence: number | undefined): number | undefined {
    if (cell.fence !== undefined || seenFence === undefined) return cell.fence;
    const highest = this.#highestFences.get(key) ?? 0;
    if (seenFence <= highest || !Number.isSafeInteger(seenFence)) return highest + 1;
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
