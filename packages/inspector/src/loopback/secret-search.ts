import { at, type View } from "./view.ts";

/** Is told a part of a text, by its first unit of UTF-16 and the one behind its last. */
export type Mark = (start: number, end: number) => void;

/** Finds many byte strings at once, in time that is linear however they are made (Aho and Corasick, 1975). */
export class SecretSearch {
  // Each state is a beginning of a secret: the first of its continuations, the next one of its own beginning, and its last byte.
  readonly #child: Int32Array;
  readonly #sibling: Int32Array;
  readonly #byte: Uint8Array;
  /** The longest proper ending that is a beginning too. */
  readonly #suffix: Int32Array;
  /** The length of the longest secret that ends here; 0 for none. */
  readonly #found: Int32Array;
  readonly #first: Int32Array = new Int32Array(256);
  #states = 1;

  constructor(secrets: readonly Uint8Array[]) {
    const most = 1 + secrets.reduce((sum, { length }) => sum + length, 0);
    this.#child = new Int32Array(most);
    this.#sibling = new Int32Array(most);
    this.#byte = new Uint8Array(most);
    this.#suffix = new Int32Array(most);
    this.#found = new Int32Array(most);
    for (const secret of secrets) this.#insert(secret);
    this.#link();
  }

  /** Marks each place of the view at which a secret stands. */
  find({ bytes, starts, ends }: View, mark: Mark): void {
    if (this.#states === 1) return;
    let state = 0;
    for (let index = 0; index < bytes.length; index += 1) {
      if (at(starts, index) < 0) {
        state = 0;
        continue;
      }
      state = this.#step(state, at(bytes, index));
      const length = at(this.#found, state);
      if (length > 0) mark(at(starts, index - length + 1), at(ends, index));
    }
  }

  #step(from: number, byte: number): number {
    for (let state = from; ; state = at(this.#suffix, state)) {
      const next = this.#next(state, byte);
      if (next !== 0 || state === 0) return next;
    }
  }

  #next(state: number, byte: number): number {
    if (state === 0) return at(this.#first, byte);
    let next = at(this.#child, state);
    while (next !== 0 && at(this.#byte, next) !== byte) next = at(this.#sibling, next);
    return next;
  }

  #insert(secret: Uint8Array): void {
    let state = 0;
    for (const byte of secret) {
      const next = this.#next(state, byte);
      state = next === 0 ? this.#add(state, byte) : next;
    }
    this.#found[state] = secret.length;
  }

  #add(from: number, byte: number): number {
    const state = this.#states;
    this.#states += 1;
    this.#byte[state] = byte;
    if (from === 0) this.#first[byte] = state;
    this.#sibling[state] = at(this.#child, from);
    this.#child[from] = state;
    return state;
  }

  /** Breadth first: what a state falls back to is shorter. */
  #link(): void {
    const order = [0];
    for (const state of order) {
      for (let next = at(this.#child, state); next !== 0; next = at(this.#sibling, next)) {
        const suffix = state === 0 ? 0 : this.#step(at(this.#suffix, state), at(this.#byte, next));
        this.#suffix[next] = suffix;
        this.#found[next] = Math.max(at(this.#found, next), at(this.#found, suffix));
        order.push(next);
      }
    }
  }
}
