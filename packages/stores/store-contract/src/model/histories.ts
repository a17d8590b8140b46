import { inTurn } from "../waiting.ts";
import type { Step } from "./step.ts";
import type { Attempt, Handle, World } from "./world.ts";

export type Event = (world: World) => Promise<void>;

export interface Possible {
  /** Time passes to the millisecond, and the clock is set back. */
  readonly clock: boolean;
  readonly retention: boolean;
  readonly list: boolean;
}

/** Picks one of the items, by a sequence that the seed determines. */
type Pick = <T extends {}>(items: readonly T[]) => T;

type Keys = readonly [string, string];
type Token = (typeof tokens)[number];

// Names that objects have already, and texts that engines cut, fold, trim or refuse.
const oddKeys = ["__proto__", "\0", "payout-1", "PAYOUT-0", "payout-0 ", "\ud800", "%00", "\u00e9"];
// `owner` is whoever has the key, `former` who had it before.
const tokens = ["owner", "owner", "owner", "former", "former", "a", "b", "c"] as const;
const attempts: readonly Attempt[] = ["former", "former", "one below", "one above", "none", "far above"];
const entries = [{}, { by: "anna", note: "\0" }, { by: "ben" }, { note: "\ud800" }];
const recoveries = ["rerun", "hold"] as const;
const handles: readonly Handle[] = [0, 1];
const states = ["running", "running", "held", "done"] as const;
const hourMs = 3_600_000;
/** A lease that no run outlives, where time passes by itself; and one that is waited for. */
const longMs = 60_000;
const shortMs = 20;
const eventsOfHistory = 20;

/** Histories one after the other on one store, each of two keys of its own. */
export function histories(seed: number, count: number, possible: Possible): readonly Event[] {
  const pick = pickBy(seed);
  return Array.from({ length: count }, (_, index) => {
    const keys: Keys = [`payout-${index}`, `${pick(oddKeys)}${index === 0 ? "" : ` of ${index}`}`];
    const makers = makersOf(pick, keys, possible);
    const events = Array.from({ length: eventsOfHistory }, () => pick(makers)());
    return [...events, ...wayOut(keys, possible)];
  }).flat();
}

/** The sequence of mulberry32. */
function pickBy(seed: number): Pick {
  let state = seed;
  return (items) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    const share = ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
    const item = items[Math.floor(share * items.length)];
    if (item === undefined) throw new Error("there is nothing to pick from");
    return item;
  };
}

/** All that can happen to a key, each as often as it stands here. */
function makersOf(pick: Pick, keys: Keys, possible: Possible): readonly (() => Event)[] {
  const pickKey = (): string => keys[pick([0, 0, 0, 1] as const)];
  const by = (): Handle => pick(handles);
  const leaseMs = (): number =>
    pick(possible.clock ? [1, 1_000, 1_000, 3_000] : [longMs, longMs, 2 * longMs]);
  const step = (plan: (world: World) => Step): Event => {
    const [handle, isUnheard] = [by(), pick([true, false, false, false])];
    return async (world) => {
      const planned = plan(world);
      // A client that saw an error repeats its step.
      if (isUnheard) await world.takeUnheard(planned, handle);
      await world.take(planned, handle);
    };
  };
  const owned = (
    plan: (owner: Readonly<{ key: string; token: string }>) => Step,
    key = pickKey(),
    token = pick(tokens),
  ): Event => step((world) => plan({ key, token: tokenOf(world, key, token) }));
  const claim = (key?: string): Event => {
    const given = { leaseMs: leaseMs(), recovery: pick(recoveries) };
    return owned((owner) => ({ op: "claim", ...owner, ...given }), key);
  };
  const heartbeat = (key?: string, token?: Token): Event => {
    const lease = leaseMs();
    return owned((owner) => ({ op: "heartbeat", ...owner, leaseMs: lease }), key, token);
  };
  const complete = (key?: string, token?: Token): Event =>
    owned((owner) => ({ op: "complete", ...owner }), key, token);
  const release = (key?: string, token?: Token): Event =>
    owned((owner) => ({ op: "release", ...owner }), key, token);
  const hold = (key?: string, token?: Token): Event => {
    const reason = pick(["in doubt", "the bank did not answer", "\0"]);
    return owned((owner) => ({ op: "hold", ...owner, reason }), key, token);
  };
  const about = (): Attempt => pick(["present", pick(attempts)]);
  const resolve = (key = pickKey(), attempt = about()): Event => {
    const [outcome, entry] = [pick(["done", "released"] as const), pick(entries)];
    return step((world) => {
      const fence = world.fenceAbout(key, attempt);
      return { op: "resolve", key, outcome, fence, ...entry };
    });
  };
  const reopen = (key = pickKey(), attempt = about()): Event => {
    const entry = pick(entries);
    return step((world) => ({
      op: "reopen",
      key,
      fence: world.fenceAbout(key, attempt),
      ...entry,
    }));
  };
  // What single steps seldom meet: a key that was decided about, and one whose decision was taken back.
  const decide = (key = pickKey()): Event =>
    together([claim(key), hold(key, "owner"), resolve(key, "present")]);
  const takeBack = (key = pickKey()): Event => together([decide(key), reopen(key, "present")]);
  const prune = (): Event => {
    const handle = by();
    return (world) => world.prune(handle, keys);
  };
  const list = (): Event => {
    const [state, limit] = [pick(states), pick([1, 3, 100])];
    return (world) => world.list(state, limit, keys);
  };
  const owners = [claim, claim, claim, claim, heartbeat, heartbeat, complete, complete, release, hold, hold];
  const operators = [resolve, resolve, reopen, reopen, decide, decide, takeBack, takeBack];
  const steps = [...owners, ...operators];
  const expire = (key: string): Event =>
    possible.clock ? reachEnd(pick, key, keys) : expiry(pick, key, keys);
  // And a lease that ends, with whatever comes then.
  const comeLate = (key = pickKey()): Event => {
    const late = pick([heartbeat, complete, release, hold])(key, "former");
    return pick([
      together([decide(key), expire(key), reopen(key, "present")]),
      together([claim(key), expire(key), claim(key), late]),
      together([claim(key), expire(key), pick(steps)(key)]),
    ]);
  };
  return [
    ...steps.map((make) => () => make()),
    () => comeLate(),
    () => comeLate(),
    ...(possible.list ? [list, list, list] : []),
    ...(possible.clock ? [() => pass(pick, keys), () => setBack(pick, keys), () => comeLate()] : []),
    ...(possible.clock ? [() => expire(pickKey()), () => expire(pickKey())] : []),
    ...(possible.retention ? [prune, prune] : []),
  ];
}

function together(events: readonly Event[]): Event {
  return (world) => inTurn(events, (event) => event(world));
}

function tokenOf(world: World, key: string, token: Token): string {
  if (token === "former") return world.formerOwnerOf(key) ?? "a";
  return token === "owner" ? (world.reference.ownerOf(key) ?? "a") : token;
}

function pass(pick: Pick, keys: Keys): Event {
  const ms = pick([1, 999, 1_000, hourMs, "the retention", "the retention"] as const);
  return async (world) => {
    if (ms !== "the retention") return world.passTime(ms, keys);
    await world.passTime(world.endOfRetentionMs, keys);
    await world.prune(0, keys);
  };
}

function setBack(pick: Pick, keys: Keys): Event {
  const ms = pick([1, 1_000, hourMs]);
  return (world) => world.passTime(-ms, keys);
}

/** The clock is moved to the end of a lease or a retention, or beside it. */
function reachEnd(pick: Pick, key: string, keys: Keys): Event {
  const beyondMs = pick([-1, 0, 0, 1]);
  return (world) => world.passTime(Math.max(1, (world.reference.endsInMs(key) ?? 0) + beyondMs), keys);
}

/** A clock that nobody moves: a lease is made short, by its owner or by a claim, and waited for. */
function expiry(pick: Pick, key: string, keys: Keys): Event {
  const [token, isClaim, recovery] = [pick(tokens), pick([true, false]), pick(recoveries)];
  return async (world) => {
    const owned = { key, token: tokenOf(world, key, token), leaseMs: shortMs };
    await world.takeUnseen(isClaim ? { op: "claim", ...owned, recovery } : { op: "heartbeat", ...owned }, 0);
    await world.outlive(shortMs, keys);
  };
}

/** Whatever happened, time or an operator makes every unpaid key claimable again, and then it is paid once. */
function wayOut(keys: Keys, possible: Possible): readonly Event[] {
  const free: Event = async (world) => {
    await inTurn(keys, (key) => world.takeUnseen(claimNext(key, shortMs), 0));
    await world.outlive(shortMs, keys);
    await inTurn(keys, async (key) => {
      const fence = world.fenceAbout(key, "present");
      await world.take({ op: "resolve", key, outcome: "released", fence }, 1);
      await world.take(claimNext(key, longMs), 1);
      await world.take({ op: "complete", key, token: "next" }, 0);
    });
  };
  const forget: Event = async (world) => {
    await world.passTime(world.endOfRetentionMs, keys);
    await world.prune(0, keys);
  };
  return possible.clock && possible.retention ? [free, forget] : [free];
}

function claimNext(key: string, leaseMs: number): Step {
  return { op: "claim", key, token: "next", leaseMs, recovery: "rerun" };
}
