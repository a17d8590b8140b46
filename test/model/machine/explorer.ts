export interface Step {
  readonly name: string;
  /** Who takes it: the index of an attempt; nobody in particular when undefined. */
  readonly by?: number | undefined;
  /** Happens by itself if only one waits. The others are faults: they may happen, and nothing may depend on them. */
  readonly fair: boolean;
}

export interface Machine<State, S extends Step> {
  readonly initial: State;
  /** The same text for states that differ in nothing that matters: these are explored once. */
  encode(state: State): string;
  /** Calls `take` for each step that is possible in `state`. */
  steps(state: State, take: (step: S, after: State) => void): void;
}

/** What holds of every transition, by its name. */
export type Invariants<State, S extends Step> = Readonly<
  Record<string, (after: State, step: S, before: State) => boolean>
>;

/** Has to stay within reach: from every reachable state, fair steps alone lead to a state where `reached` is true. */
export interface Goal<State> {
  readonly name: string;
  reached(state: State): boolean;
}

export interface Violation<State, S extends Step> {
  readonly name: string;
  /** A shortest way into it, from the initial state. */
  readonly trace: readonly { readonly step: S; readonly after: State }[];
}

export interface Exploration<State, S extends Step> {
  readonly states: number;
  readonly transitions: number;
  readonly ms: number;
  readonly steps: ReadonlySet<string>;
  readonly violation: Violation<State, S> | undefined;
}

interface Expectations<State, S extends Step> {
  readonly invariants: Invariants<State, S>;
  readonly goal?: Goal<State> | undefined;
  /** Throws a RangeError beyond so many states. Default 5,000,000. */
  readonly maxStates?: number | undefined;
}

/**
 * Visits every reachable state, breadth first, and stops at the first transition that breaks an invariant: no way to a violation
 * is shorter. When none does, looks for the first state out of whose reach the goal is.
 */
export function explore<State, S extends Step>(
  machine: Machine<State, S>,
  { invariants, goal, maxStates = 5_000_000 }: Expectations<State, S>,
): Exploration<State, S> {
  const startedAtMs = performance.now();
  const graph = new Graph(machine.encode(machine.initial));
  const names = new Set<string>();
  const named = Object.entries(invariants);
  const reached: boolean[] = [goal?.reached(machine.initial) ?? true];
  let frontier: State[] = [machine.initial];
  let transitions = 0;
  let index = -1;
  const result = (violation: Violation<State, S> | undefined): Exploration<State, S> => {
    const ms = Math.round(performance.now() - startedAtMs);
    return { states: graph.size, transitions, ms, steps: names, violation };
  };

  while (frontier.length > 0) {
    const next: State[] = [];
    for (const before of frontier) {
      index += 1;
      let broken: { readonly name: string; readonly last: TraceEnd<State, S> } | undefined;
      machine.steps(before, (step, after) => {
        transitions += 1;
        names.add(step.name);
        const invariant = named.find(([, holds]) => !holds(after, step, before));
        if (invariant !== undefined) broken ??= { name: invariant[0], last: { step, after } };
        const number = graph.add(machine.encode(after), index);
        if (number === reached.length) {
          next.push(after);
          reached.push(goal?.reached(after) ?? true);
        }
        // Out of a state that has reached the goal nobody needs a way.
        if (step.fair && reached[index] === false) graph.addFair(index, number);
      });
      if (broken !== undefined) {
        const trace = [...retrace(machine, graph.pathTo(index)), broken.last];
        return result({ name: broken.name, trace });
      }
      if (graph.size > maxStates) throw new RangeError(`more than ${maxStates} states`);
    }
    frontier = next;
  }
  const lost = goal === undefined ? -1 : graph.firstWithout(reached);
  if (goal === undefined || lost === -1) return result(undefined);
  return result({ name: goal.name, trace: retrace(machine, graph.pathTo(lost)) });
}

type TraceEnd<State, S extends Step> = Violation<State, S>["trace"][number];

/** The visited states, numbered in the order of their discovery, and the fair transitions between them. */
class Graph {
  readonly #numbers = new Map<string, number>();
  readonly #keys: string[] = [];
  readonly #parents: number[] = [];
  readonly #fairFrom: number[] = [];
  readonly #fairTo: number[] = [];

  constructor(initial: string) {
    this.add(initial, -1);
  }

  get size(): number {
    return this.#keys.length;
  }

  /** The number of the state, which is new when it is the last one. */
  add(key: string, parent: number): number {
    const known = this.#numbers.get(key);
    if (known !== undefined) return known;
    const number = this.#keys.length;
    this.#numbers.set(key, number);
    this.#keys.push(key);
    this.#parents.push(parent);
    return number;
  }

  addFair(from: number, to: number): void {
    this.#fairFrom.push(from);
    this.#fairTo.push(to);
  }

  /** The keys on the way by which the state was discovered, without that of the initial state. */
  pathTo(state: number): string[] {
    const parent = this.#parents[state]!;
    return parent === -1 ? [] : [...this.pathTo(parent), this.#keys[state]!];
  }

  /** The first state from which fair transitions lead to none of the `reached`; -1 when there is none. */
  firstWithout(reached: readonly boolean[]): number {
    // The transitions into each state, one behind the other: those into `to` begin at firstInto[to].
    const firstInto = new Int32Array(this.size + 1);
    for (const to of this.#fairTo) firstInto[to + 1]! += 1;
    for (let state = 0; state < this.size; state += 1) firstInto[state + 1]! += firstInto[state]!;
    const free = firstInto.slice();
    const sources = new Int32Array(this.#fairTo.length);
    this.#fairTo.forEach((to, edge) => {
      sources[free[to]!] = this.#fairFrom[edge]!;
      free[to]! += 1;
    });
    const found = [...reached];
    const open = [...found.keys()].filter((state) => found[state]);
    for (let to = open.pop(); to !== undefined; to = open.pop()) {
      for (const from of sources.subarray(firstInto[to], firstInto[to + 1])) {
        if (!found[from]) open.push(from);
        found[from] = true;
      }
    }
    return found.indexOf(false);
  }
}

/** Takes the way once more, so that no state but those of the frontier has to be kept. */
function retrace<State, S extends Step>(
  machine: Machine<State, S>,
  path: readonly string[],
): TraceEnd<State, S>[] {
  let state = machine.initial;
  return path.map((key) => {
    let taken: TraceEnd<State, S> | undefined;
    machine.steps(state, (step, after) => {
      if (machine.encode(after) === key) taken ??= { step, after };
    });
    if (taken === undefined) throw new Error("steps() and encode() do not give the same twice");
    state = taken.after;
    return taken;
  });
}
