import type { View } from "./encoded-views.ts";

/** From a text's first UTF-16 unit to the one after its last. */
export type Mark = (start: number, end: number) => void;

interface State {
  readonly next: Map<number, State>;
  /** The longest proper suffix that is also a prefix; undefined for the empty one. */
  suffix: State | undefined;
  /** The longest secret that ends here; 0 for none. */
  found: number;
}

/** Finds many byte strings at once in linear time (Aho and Corasick, 1975). */
export class SecretSearch {
  readonly #empty = newState();

  /** Byte strings, as in a view. */
  constructor(secrets: readonly string[]) {
    for (const secret of secrets) {
      let state = this.#empty;
      for (const byte of Buffer.from(secret, "latin1")) {
        const next = state.next.get(byte) ?? newState();
        state.next.set(byte, next);
        state = next;
      }
      state.found = secret.length;
    }
    // Breadth first: a suffix is shorter than its state.
    const order = [this.#empty];
    for (const state of order) {
      for (const [byte, next] of state.next) {
        next.suffix = step(state.suffix, byte) ?? this.#empty;
        next.found = Math.max(next.found, next.suffix.found);
        order.push(next);
      }
    }
  }

  find({ bytes, starts, ends }: View, mark: Mark): void {
    if (this.#empty.next.size === 0) return;
    let state = this.#empty;
    for (let index = 0; index < bytes.length; index += 1) {
      const isBreak = (starts[index] ?? -1) < 0;
      state = (isBreak ? undefined : step(state, bytes.charCodeAt(index))) ?? this.#empty;
      if (state.found > 0) mark(starts[index - state.found + 1] ?? 0, ends[index] ?? 0);
    }
  }
}

function newState(): State {
  return { next: new Map(), suffix: undefined, found: 0 };
}

function step(from: State | undefined, byte: number): State | undefined {
  for (let state = from; state !== undefined; state = state.suffix) {
    const next = state.next.get(byte);
    if (next !== undefined) return next;
  }
  return undefined;
}
