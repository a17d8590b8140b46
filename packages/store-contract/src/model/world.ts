import { expect } from "@jest/globals";
import type { Clock, Platform, ProcessIndex } from "./engine.ts";
import { PaymentRecord } from "./payment-record.ts";
import { performStep } from "./perform-step.ts";
import { ReferenceStore, type Step, fenceIn, leaseMs } from "./reference-store.ts";

/** Dots as on the wire, a name that objects have already, and a text that engines cut or refuse. */
export const keys: readonly string[] = ["a.b.c", "__proto__", "\0"];

export const owners = ["anna", "ben", "cleo"] as const;

/** Who sends a step. `late`: it was sent before the last crash of its owner and arrives only now. */
export interface Sender {
  readonly owner: (typeof owners)[number];
  readonly late: boolean;
}

/** The platform under test. */
export interface Real {
  readonly platform: Platform;
  readonly clock: Clock;
  readonly prunes: boolean;
}

/** Which attempt an operator decides about. */
export type Attempt = "present" | "former" | "future";

/** What the reference and the owners know. */
export class World {
  readonly reference: ReferenceStore;
  readonly record: PaymentRecord = new PaymentRecord();
  /** An owner that crashed has another token from then on: it forgot the old one. */
  readonly #crashes = new Map<string, number>();
  /** The fences that each key has shown, the last one last. */
  readonly #fences = new Map<string, readonly number[]>();
  /** A key whose retention has ended is gone or not: pruning is the engine's affair. */
  hasForgotten = false;

  constructor(nowMs: number) {
    this.reference = new ReferenceStore(nowMs);
  }

  tokenOf({ owner, late }: Sender): string {
    return `${owner}-${Math.max(0, (this.#crashes.get(owner) ?? 0) - (late ? 1 : 0))}`;
  }

  crash(owner: string): void {
    this.#crashes.set(owner, (this.#crashes.get(owner) ?? 0) + 1);
  }

  /** The fence of the attempt that has, or last had, the key; of the one before it; or of one that is still to come. */
  fenceAbout(key: string, attempt: Attempt): number {
    const fences = this.#fences.get(key) ?? [];
    if (attempt === "future") return (fences.at(-1) ?? 0) + 1_000_000_000;
    return fences.at(attempt === "present" ? -1 : -2) ?? 1;
  }

  /** Takes a step whose reply arrives. */
  async take(step: Step, by: ProcessIndex, { platform }: Real): Promise<void> {
    const answer = await performStep(platform, by, step);
    expect(answer).toEqual(this.reference.apply(step, answer));
    this.#noteFence(step.key, fenceIn(answer));
    this.record.note(step, answer);
  }

  /** Takes a step whose reply is lost: what it did is seen by the next ones. */
  async takeUnheard(step: Step, by: ProcessIndex, { platform }: Real): Promise<void> {
    await performStep(platform, by, step);
    this.record.note(step, this.reference.apply(step));
  }

  passTime(ms: number, { clock }: Real): void {
    const done = keys.filter((key) => this.reference.stateOf(key) === "done");
    const remembered = keys.filter((key) => this.reference.remembers(key));
    this.reference.nowMs += ms;
    clock.nowMs = this.reference.nowMs;
    const forgotten = done.filter((key) => this.reference.stateOf(key) === "absent");
    this.hasForgotten ||= remembered.some((key) => !this.reference.remembers(key));
    this.record.forget(forgotten);
  }

  /** Every key reads the same in the store, as `by` has it, and in the reference. */
  async expectSameRecords(by: ProcessIndex, real: Real): Promise<void> {
    for (const key of keys) {
      await this.take({ op: "read", key }, by, real);
      await this.take({ op: "readReleased", key }, by, real);
    }
  }

  /** I1: as many payments are on record as their owners know of. */
  async expectSamePayments({ platform }: Real): Promise<void> {
    if (platform.payments === undefined) return;
    const paid = await platform.payments.paidKeys();
    expect(tally(paid)).toEqual(tally(this.record.everPaidInTransaction));
  }

  /**
   * I3: whatever happened, time makes every unpaid key claimable again, or an operator where the key is held, and then it is
   * paid once.
   */
  async expectWayOut(real: Real): Promise<void> {
    // Whoever waits takes its turn after one lease, also when the clock was set back.
    for (const key of keys) await this.take({ op: "claim", key, token: "next", recovery: "rerun" }, 1, real);
    this.passTime(leaseMs, real);
    for (const key of keys) {
      if (this.reference.stateOf(key) === "held")
        await this.take(
          { op: "resolve", key, outcome: "released", fence: this.fenceAbout(key, "present") },
          0,
          real,
        );
      const claim: Step = { op: "claim", key, token: "next", recovery: "rerun" };
      const answer = await performStep(real.platform, 1, claim);
      const isDone = this.reference.stateOf(key) === "done";
      expect(answer).toMatchObject({ status: isDone ? "done" : "acquired" });
      if (isDone) continue;
      this.reference.apply(claim, answer);
      this.record.note(claim, answer);
      const pays = real.platform.payments !== undefined;
      await this.take(
        pays ? { op: "pay", key, token: "next", ending: "commit" } : { op: "complete", key, token: "next" },
        0,
        real,
      );
      expect(this.record.payersOf(key)).toEqual(new Set(["next"]));
    }
    await this.expectSameRecords(0, real);
    await this.expectSamePayments(real);
  }

  #noteFence(key: string, fence: number | undefined): void {
    const fences = this.#fences.get(key) ?? [];
    if (fence !== undefined && fence !== fences.at(-1)) this.#fences.set(key, [...fences, fence]);
  }
}

function tally(paid: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const key of paid) counts.set(key, (counts.get(key) ?? 0) + 1);
  return counts;
}
