import { AssertionError } from "node:assert/strict";
import { isDeepStrictEqual } from "node:util";
import type { IdempotencyRecord } from "@countersign/idempotency";
import { type Store, eachPage, knownOf } from "../claims.ts";
import type { IdempotencyStoreHarness } from "../harness.ts";
import { inTurn, outcomeOf, pass } from "../waiting.ts";
import { ReferenceStore } from "./reference-store.ts";
import { type Step, fenceIn, memberOf, performStep } from "./step.ts";

/** Which of the two stores on the same data takes a step. */
export type Handle = 0 | 1;

/** Which attempt an operator decides about: by its fence, or by one beside it. */
export type Attempt = "present" | "former" | "one below" | "one above" | "none" | "far above";

type Keys = readonly string[];

/** What the reference knows while a store takes the same steps. */
export class World {
  reference: ReferenceStore;
  readonly lines: string[] = [];
  /** Keys that time has ended: whether the engine still has them is its own affair. */
  readonly #forgotten = new Set<string>();
  readonly #harness: IdempotencyStoreHarness;
  readonly #isExact: boolean;
  readonly #stores: readonly [Store, Store];
  /** The fences that each key has shown, the last one last. */
  readonly #fences = new Map<string, readonly number[]>();
  /** Who has ever been given a key, the last one last. */
  readonly #owners = new Map<string, readonly string[]>();
  #looks = 0;
  /** Whether prune() removes what has ended; undefined until it has told. */
  #prunes: boolean | undefined;

  constructor(harness: IdempotencyStoreHarness, another: Store, isExact: boolean) {
    this.#harness = harness;
    this.#isExact = isExact;
    this.#stores = [harness.store, another];
    // Without a moved clock, or a store that tells its retention, none ends.
    const { retentionMs = Number.MAX_SAFE_INTEGER / 4 } = harness.store;
    this.reference = new ReferenceStore({ retentionMs, isExact });
  }

  /** The fence of the attempt that has, or last had, the key; or another one. */
  fenceAbout(key: string, attempt: Attempt): number {
    const fences = this.#fences.get(key) ?? [];
    const present = fences.at(-1) ?? 1;
    const others = {
      present,
      former: fences.at(-2) ?? 1,
      "one below": present - 1,
      "one above": present + 1,
      none: 0,
      "far above": Number.MAX_SAFE_INTEGER,
    };
    return others[attempt];
  }

  formerOwnerOf(key: string): string | undefined {
    const others = this.#owners.get(key)?.filter((owner) => owner !== this.reference.ownerOf(key));
    return others?.at(-1);
  }

  /** For how long a done key is remembered, and a little more. */
  get endOfRetentionMs(): number {
    return (this.#harness.store.retentionMs ?? 0) + 1;
  }

  /** Takes a step whose reply arrives, and looks at its key through the other store. */
  async take(step: Step, by: Handle): Promise<void> {
    await this.takeUnseen(step, by);
    await this.look([step.key], by === 0 ? 1 : 0);
  }

  /** Takes a step whose reply arrives. */
  async takeUnseen(step: Step, by: Handle): Promise<void> {
    const answer = await this.#perform(step, by);
    const fence = fenceIn(answer);
    this.#compare(shown(step), known(answer), this.reference.apply(step, answer));
    const { key } = step;
    const fences = this.#fences.get(key) ?? [];
    if (fence !== undefined && fence !== fences.at(-1)) this.#fences.set(key, [...fences, fence]);
    const owners = this.#owners.get(key) ?? [];
    if (step.op === "claim" && fence !== undefined) this.#owners.set(key, [...owners, step.token]);
  }

  /** Takes a step whose reply is lost: the next ones see what it did. */
  async takeUnheard(step: Step, by: Handle): Promise<void> {
    this.lines.push(`${shown(step)}, whose reply is lost`);
    await this.#perform(step, by);
    this.reference.apply(step);
  }

  /** Takes two steps on a key at once. What comes of them must come of one after the other, in some order. */
  async takeAtOnce(steps: readonly [Step, Step], by: readonly [Handle, Handle]): Promise<void> {
    const take = (at: 0 | 1): Promise<unknown> => this.#perform(steps[at], by[at]);
    const [one, other] = await Promise.all([outcomeOf(() => take(0)), outcomeOf(() => take(1))]);
    // An engine may lose its patience with a row that the other step has: nothing happened, and the step comes after that one.
    const first = { step: steps[0], answer: one.error === undefined ? one.value : await take(0) };
    const second = { step: steps[1], answer: other.error === undefined ? other.value : await take(1) };
    const read: Step = { op: "read", key: steps[0].key };
    const last = { step: read, answer: await this.#perform(read, by[1]) };
    const orders = [this.#after([first, second, last]), this.#after([second, first, last])];
    const fitting = orders.find(({ isRight }) => isRight);
    if (fitting === undefined) {
      const given = text([first, second, last].map(({ answer }) => plain(known(answer))));
      const right = orders.map(({ expected }) => text(expected)).join(", or ");
      const what = `${steps.map(shown).join(" and ")} at once gave ${given}`;
      throw new AssertionError({
        message: `${what}; a right store gives, in the order of its steps, ${right}`,
      });
    }
    this.reference = fitting.reference;
  }

  /** What a right store answers to these steps, one after the other, and whether the store did. */
  #after(taken: readonly { readonly step: Step; readonly answer: unknown }[]) {
    const reference = this.reference.clone();
    const expected = taken.map(({ step, answer }) => plain(reference.apply(step, answer)));
    const isRight = taken.every(({ answer }, at) => isDeepStrictEqual(plain(known(answer)), expected[at]));
    return { reference, expected, isRight };
  }

  /** Each key reads the same in the store and in the reference. */
  async look(keys: Keys, by: Handle): Promise<void> {
    await inTurn(keys, async (key) => {
      await this.takeUnseen({ op: "read", key }, by);
      this.#looks += 1;
      // Of a key that is not free there is nothing to tell: now and then is enough to see that.
      const isFree = this.reference.stateOf(key) === "absent";
      if (isFree || this.#looks % 4 === 0) await this.takeUnseen({ op: "readReleased", key }, by);
    });
  }

  /** Lets exactly so many milliseconds pass. Sets the clock back, below 0, where no key is that has ended. */
  async passTime(ms: number, keys: Keys): Promise<void> {
    if (ms < 0 && keys.some((key) => this.#forgotten.has(key))) return;
    this.lines.push(ms < 0 ? `the clock is set back by ${-ms} ms` : `${ms} ms pass`);
    this.#moveReference(ms, keys);
    await this.#harness.advance?.(ms);
    await this.look(keys, 0);
  }

  async outlive(ms: number, keys: Keys): Promise<void> {
    if (this.#isExact) return this.passTime(ms, keys);
    this.lines.push(`${ms} ms pass`);
    await pass(this.#harness, ms);
    // No more than surely passed: a timer may run early, and a reading is rounded.
    this.#moveReference(ms, keys);
    await this.look(keys, 0);
  }

  async prune(by: Handle, keys: Keys): Promise<void> {
    const ended = this.reference.prune();
    const removed = await this.#stores[by].prune();
    // Where the engine removes by itself what has ended, nothing is left to be counted.
    const expected = removed === 0 && this.#prunes !== true ? 0 : ended;
    if (removed > 0) this.#prunes = true;
    this.#compare("prune()", removed, expected);
    await this.look(keys, by);
  }

  async list(state: IdempotencyRecord["state"], limit: number, keys: Keys): Promise<void> {
    const listed = new Map<string, IdempotencyRecord>();
    await eachPage(this.#stores[0], { state, limit }, async (entries) => {
      for (const { key, record } of entries) listed.set(key, record);
    });
    await inTurn(keys, async (key) => {
      const record = listed.get(key);
      const expected = this.reference.stateOf(key) === state;
      this.#compare(`list({ state: "${state}" }) has ${JSON.stringify(key)}`, record !== undefined, expected);
      const read = this.reference.apply({ op: "read", key }, record);
      if (expected) this.#compare(`list({ state: "${state}" })`, known(record), read);
    });
  }

  async #perform(step: Step, by: Handle): Promise<unknown> {
    try {
      return await performStep(this.#stores[by], step);
    } catch (error) {
      this.lines.push(`${shown(step)} throws`);
      throw error;
    }
  }

  #moveReference(ms: number, keys: Keys): void {
    const isKept = (key: string): boolean => this.reference.endsInMs(key) !== undefined;
    const remembered = keys.filter(isKept);
    this.reference.nowMs += ms;
    for (const key of remembered) if (!isKept(key)) this.#forgotten.add(key);
  }

  #compare(what: string, answer: unknown, expected: unknown): void {
    const wanted = plain(expected);
    const given = plain(answer);
    const isReading = what.startsWith("read");
    if (isDeepStrictEqual(given, wanted)) {
      if (!isReading) this.lines.push(`${what} -> ${text(given)}`);
      return;
    }
    this.lines.push(`${what} -> ${text(given)}; a right store answers ${text(wanted)}`);
    throw new AssertionError({ message: `${what} must be ${text(wanted)}, got ${text(given)}` });
  }
}

function known(answer: unknown): unknown {
  if (!isRecord(answer)) return answer;
  return answer.state === "running"
    ? { ...knownOf(answer), remainingMs: answer.remainingMs }
    : knownOf(answer);
}

function isRecord(answer: unknown): answer is IdempotencyRecord {
  return typeof memberOf(answer, "token") === "string";
}

/** The value without its class and without members that are undefined. */
function plain(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  return Object.fromEntries(members.map(([name, member]) => [name, plain(member)]));
}

function shown({ op, key, ...given }: Step): string {
  const details = Object.keys(given).length === 0 ? "" : `, ${text(given)}`;
  return `${op}(${JSON.stringify(key)}${details})`;
}

function text(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "undefined").replaceAll('"', "");
}
