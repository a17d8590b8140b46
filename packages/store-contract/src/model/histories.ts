import { expect } from "@jest/globals";
import * as fc from "fast-check";
import type { ProcessIndex } from "./engine.ts";
import { type Step, leaseMs, retentionMs } from "./reference-store.ts";
import { type Attempt, type Real, type Sender, type World, keys, owners } from "./world.ts";

type Command = fc.AsyncCommand<World, Real>;

/** The step of a sender with this token; `fenceOf` an attempt, for an operator. */
type Plan = (token: string, fenceOf: (key: string, attempt: Attempt) => number) => Step;

/** As the fences of attempts are printed: 0 for the present one, and so on. */
const attempts: readonly Attempt[] = ["present", "former", "future"];

/** A step of the store. Its reply arrives; or it is dropped, and the sender, who saw an error, repeats the step. */
class TakeStep implements Command {
  readonly #sender: Sender;
  readonly #by: ProcessIndex;
  readonly #isDropped: boolean;
  readonly #plan: Plan;

  constructor([sender, by, isDropped]: readonly [Sender, ProcessIndex, boolean], plan: Plan) {
    this.#sender = sender;
    this.#by = by;
    this.#isDropped = isDropped;
    this.#plan = plan;
  }

  check(): boolean {
    return true;
  }

  async run(world: World, real: Real): Promise<void> {
    const step = this.#plan(world.tokenOf(this.#sender), (key, attempt) => world.fenceAbout(key, attempt));
    if (this.#isDropped) await world.takeUnheard(step, this.#by, real);
    if (!this.#isDropped || step.op !== "pay") await world.take(step, this.#by, real);
    await world.expectSameRecords(this.#by === 0 ? 1 : 0, real);
  }

  toString(): string {
    const { owner, late } = this.#sender;
    const plan = this.#plan(owner + (late ? " before the crash" : ""), (_key, attempt) =>
      attempts.indexOf(attempt),
    );
    const step = JSON.stringify(plan);
    return `${step} by process ${this.#by}${this.#isDropped ? ", reply dropped" : ""}`;
  }
}

/** An owner and its process die: nobody knows the token any more. */
class Crash implements Command {
  readonly #owner: Sender["owner"];
  readonly #by: ProcessIndex;

  constructor(owner: Sender["owner"], by: ProcessIndex) {
    this.#owner = owner;
    this.#by = by;
  }

  check(): boolean {
    return true;
  }

  async run(world: World, real: Real): Promise<void> {
    world.crash(this.#owner);
    await real.platform.restart(this.#by);
    await world.expectSameRecords(this.#by, real);
  }

  toString(): string {
    return `${this.#owner} crashes with process ${this.#by}`;
  }
}

/** Leases and retention end. */
class PassTime implements Command {
  readonly #ms: number;

  constructor(ms: number) {
    this.#ms = ms;
  }

  check(): boolean {
    return true;
  }

  async run(world: World, real: Real): Promise<void> {
    world.passTime(this.#ms, real);
    await world.expectSameRecords(0, real);
  }

  toString(): string {
    return `${this.#ms} ms pass`;
  }
}

/** The engine's clock is set back. Not over the end of a retention: whether the key is still there is the engine's affair. */
class SetClockBack implements Command {
  readonly #ms: number;

  constructor(ms: number) {
    this.#ms = ms;
  }

  check(world: Readonly<World>): boolean {
    return !world.hasForgotten;
  }

  async run(world: World, real: Real): Promise<void> {
    world.passTime(-this.#ms, real);
    await world.expectSameRecords(0, real);
  }

  toString(): string {
    return `the clock is set back by ${this.#ms} ms`;
  }
}

class Prune implements Command {
  readonly #by: ProcessIndex;

  constructor(by: ProcessIndex) {
    this.#by = by;
  }

  check(): boolean {
    return true;
  }

  async run(world: World, { platform, prunes, ...real }: Real): Promise<void> {
    const ended = world.reference.prune();
    expect(await platform.store(this.#by).prune()).toBe(prunes ? ended : 0);
    await world.expectSameRecords(this.#by, { platform, prunes, ...real });
  }

  toString(): string {
    return `process ${this.#by} prunes`;
  }
}

/** All that can happen to two processes on one store, and to their clients. */
export function commands({ pays }: { readonly pays: boolean }): fc.Arbitrary<Command>[] {
  const key = fc.constantFrom(...keys);
  const by = fc.constantFrom<ProcessIndex>(0, 1);
  const owner = fc.constantFrom(...owners);
  const late = fc.oneof({ weight: 4, arbitrary: fc.constant(false) }, fc.constant(true));
  const isDropped = fc.oneof({ weight: 3, arbitrary: fc.constant(false) }, fc.constant(true));
  const attempt = fc.oneof(
    { weight: 2, arbitrary: fc.constant<Attempt>("present") },
    fc.constantFrom(...attempts),
  );
  const delivery = fc.tuple(fc.record({ owner, late }), by, isDropped);
  const claim = fc.tuple(delivery, key, fc.constantFrom("hold" as const, "rerun" as const));
  const pay = fc.tuple(delivery, key, fc.constantFrom("commit" as const, "rollback", "crash"));
  return [
    claim.map(
      ([sent, at, recovery]) => new TakeStep(sent, (token) => ({ op: "claim", key: at, token, recovery })),
    ),
    claim.map(
      ([sent, at]) => new TakeStep(sent, (token) => ({ op: "claim", key: at, token, recovery: "rerun" })),
    ),
    ...(["heartbeat", "complete", "release", "hold"] as const).map((op) =>
      fc.tuple(delivery, key).map(([sent, at]) => new TakeStep(sent, (token) => ({ op, key: at, token }))),
    ),
    fc.tuple(delivery, key, fc.constantFrom("done" as const, "released"), attempt).map(
      ([sent, at, outcome, about]) =>
        new TakeStep(sent, (_token, fenceOf) => ({
          op: "resolve",
          key: at,
          outcome,
          fence: fenceOf(at, about),
        })),
    ),
    fc
      .tuple(delivery, key, attempt)
      .map(
        ([sent, at, about]) =>
          new TakeStep(sent, (_token, fenceOf) => ({ op: "reopen", key: at, fence: fenceOf(at, about) })),
      ),
    fc.constantFrom(1, leaseMs, 3_600_000).map((ms) => new SetClockBack(ms)),
    fc
      .constantFrom(1, leaseMs - 1, leaseMs, leaseMs + 1, retentionMs / 2, retentionMs - 1, retentionMs)
      .map((ms) => new PassTime(ms)),
    fc.tuple(owner, by).map(([who, where]) => new Crash(who, where)),
    by.map((where) => new Prune(where)),
    ...(pays
      ? [
          pay.map(
            ([sent, at, ending]) => new TakeStep(sent, (token) => ({ op: "pay", key: at, token, ending })),
          ),
        ]
      : []),
  ];
}
