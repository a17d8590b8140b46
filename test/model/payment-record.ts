import { expect } from "@jest/globals";
import type { Step } from "../../packages/stores/store-contract/dist/model/step.js";

/** Who paid which key, by the accounts of the owners themselves: what the invariants are about. */
export class PaymentRecord {
  readonly #payers = new Map<string, Set<string>>();
  /** Keys that an operator declared as paid, whoever paid them. */
  readonly #declared = new Set<string>();

  payersOf(key: string): ReadonlySet<string> {
    return this.#payers.get(key) ?? new Set();
  }

  /** Writes down what the answer means for the money, and checks I1 and I2 on it. */
  note(step: Step, answer: unknown): void {
    const { key } = step;
    const isPaid = this.payersOf(key).size > 0 || this.#declared.has(key);
    if (step.op === "claim") {
      const { status } = answer as { readonly status: string };
      // I1: a key that was paid is never given away. I2: `done` is said of nothing else.
      if (status === "acquired") expect({ key, isPaid }).toEqual({ key, isPaid: false });
      if (status === "done") expect({ key, isPaid }).toEqual({ key, isPaid: true });
    }
    if (answer !== "ok") return;
    // I1: no owner that wakes up ends what an operator declared.
    if (step.op === "complete" && this.#declared.has(key))
      expect({ key, answer }).toEqual({ key, answer: "lost" });
    if (step.op === "resolve" && step.outcome === "done") this.#declared.add(key);
    // I10: what an attempt has ended itself is nobody's to take back.
    if (step.op === "reopen") expect({ key, payers: this.payersOf(key).size }).toEqual({ key, payers: 0 });
    if (step.op === "reopen") this.#declared.delete(key);
    if (step.op === "complete") {
      this.#payers.set(key, new Set([...this.payersOf(key), step.token]));
      expect({ key, payers: this.payersOf(key).size }).toEqual({ key, payers: 1 });
    }
  }

  /** The retention of these keys has ended: a payment of one of them from now on is another payment. */
  forget(keys: readonly string[]): void {
    for (const key of keys) {
      this.#payers.delete(key);
      this.#declared.delete(key);
    }
  }
}
