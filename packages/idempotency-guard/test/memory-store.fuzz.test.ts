import { expect, test } from "@jest/globals";
import * as fc from "fast-check";
import {
  memoryIdempotencyStore,
  type IdempotencyClaim,
  type IdempotencyClaimResult,
  type MemoryIdempotencyStore,
} from "@countersign/idempotency-guard";

const retentionMs = 1_000;
const keys = ["k", "__proto__"];

/** The states of the specification, written down as plainly as possible. */
interface Cell {
  state: "absent" | "run" | "held" | "done";
  token: string;
  until: number;
  lastFence: number;
  /** Owners that paid since the key was last forgotten, by the handler's own account. */
  paid: string[];
}

interface Model {
  now: number;
  readonly cells: Record<string, Cell>;
}

interface Real {
  readonly store: MemoryIdempotencyStore;
  readonly clock: { now: number };
}

type Command = fc.Command<Model, Real>;

function cell(model: Model, key: string): Cell {
  const found = model.cells[key];
  if (found === undefined) throw new Error("the model knows all keys");
  if (found.state === "done" && model.now > found.until)
    Object.assign(found, { state: "absent", token: "", paid: [] });
  return found;
}

abstract class Step implements Command {
  readonly key: string;
  readonly token: string;
  constructor(key: string, token: string) {
    this.key = key;
    this.token = token;
  }
  check(): boolean {
    return true;
  }
  abstract run(model: Model, real: Real): void;
  toString(): string {
    return `${this.constructor.name}(${this.key}, ${this.token})`;
  }
  owns(model: Model): boolean {
    const found = cell(model, this.key);
    return found.state === "run" && found.token === this.token;
  }
}

class Claim extends Step {
  readonly recovery: "hold" | "rerun";
  /** The reply is dropped and the same claim sent again. */
  readonly resent: boolean;
  constructor(key: string, token: string, recovery: "hold" | "rerun", resent: boolean) {
    super(key, token);
    this.recovery = recovery;
    this.resent = resent;
  }
  run(model: Model, { store }: Real): void {
    const claim: IdempotencyClaim = {
      token: this.token,
      fingerprint: "f",
      leaseMs: 100,
      recovery: this.recovery,
    };
    if (this.resent) store.claim(this.key, claim);
    const result: IdempotencyClaimResult = store.claim(this.key, claim);
    const found = cell(model, this.key);
    const expired = found.state === "run" && model.now >= found.until;
    if (this.owns(model)) {
      expect(result).toEqual({ status: "acquired", fence: found.lastFence });
      found.until = model.now + 100;
    } else if (found.state === "absent" || (expired && this.recovery === "rerun")) {
      expect(result.status).toBe("acquired");
      const { fence } = result as { fence: number };
      expect(fence).toBeGreaterThan(found.lastFence);
      Object.assign(found, { state: "run", token: this.token, until: model.now + 100, lastFence: fence });
    } else if (expired) {
      expect(result.status).toBe("held");
      found.state = "held";
    } else {
      expect(result.status).toBe(found.state === "run" ? "in-flight" : found.state);
    }
    // I1 and I2: a key that was paid is never given away, and `done` is said of nothing else.
    if (found.state === "done") expect(found.paid).toHaveLength(1);
    if (result.status === "acquired") expect(found.paid).toHaveLength(0);
  }
}

class Heartbeat extends Step {
  run(model: Model, { store }: Real): void {
    const owned = this.owns(model);
    expect(store.heartbeat(this.key, this.token, 100)).toBe(owned ? "ok" : "lost");
    if (owned) cell(model, this.key).until = model.now + 100;
  }
}

class Complete extends Step {
  run(model: Model, { store }: Real): void {
    const found = cell(model, this.key);
    const owned = found.state !== "absent" && found.token === this.token;
    expect(store.complete(this.key, this.token)).toBe(owned ? "ok" : "lost");
    if (!owned || found.state === "done") return;
    Object.assign(found, { state: "done", until: model.now + retentionMs });
    // The payment commits together with the record: at most one per key.
    found.paid.push(this.token);
    expect(found.paid).toHaveLength(1);
  }
}

class Release extends Step {
  run(model: Model, { store }: Real): void {
    const owned = this.owns(model);
    expect(store.release(this.key, this.token)).toBe(owned ? "ok" : "lost");
    if (owned) Object.assign(cell(model, this.key), { state: "absent", token: "" });
  }
}

class Hold extends Step {
  run(model: Model, { store }: Real): void {
    const owned = this.owns(model);
    expect(store.hold(this.key, this.token, "in doubt")).toBe(owned ? "ok" : "lost");
    if (owned) cell(model, this.key).state = "held";
  }
}

class Resolve extends Step {
  run(model: Model, { store }: Real): void {
    const found = cell(model, this.key);
    const open = found.state === "held" || (found.state === "run" && model.now >= found.until);
    const outcome = this.token === "a" ? "done" : "released";
    expect(store.resolve(this.key, outcome)).toBe(open ? "ok" : "not-held");
    if (!open) return;
    if (outcome === "released") Object.assign(found, { state: "absent", token: "" });
    else {
      Object.assign(found, { state: "done", until: model.now + retentionMs });
      found.paid.push("operator");
    }
  }
}

/** Time goes by: leases and retention end, and an owner that crashed is one that does nothing meanwhile. */
class Pass implements Command {
  readonly ms: number;
  constructor(ms: number) {
    this.ms = ms;
  }
  check(): boolean {
    return true;
  }
  run(model: Model, { clock }: Real): void {
    model.now += this.ms;
    clock.now = model.now;
  }
  toString(): string {
    return `Pass(${this.ms})`;
  }
}

class Prune implements Command {
  check(): boolean {
    return true;
  }
  run(_model: Model, { store }: Real): void {
    expect(store.prune()).toBeGreaterThanOrEqual(0);
  }
  toString(): string {
    return "Prune";
  }
}

/** I3: whatever state it is in, time and an operator make every unpaid key claimable again. */
function expectWayOut(model: Model, { store, clock }: Real): void {
  model.now += 200;
  clock.now = model.now;
  for (const key of keys) {
    if (cell(model, key).state === "done") continue;
    store.resolve(key, "released");
    const result = store.claim(key, { token: "next", fingerprint: "f", leaseMs: 100, recovery: "hold" });
    expect(result).toMatchObject({ status: "acquired" });
  }
}

test("the memory store follows the state machine under any order of steps", () => {
  const key = fc.constantFrom(...keys);
  const token = fc.constantFrom("a", "b", "c");
  const commands = [
    fc
      .tuple(key, token, fc.constantFrom("hold" as const, "rerun" as const), fc.boolean())
      .map((args) => new Claim(...args)),
    fc.tuple(key, token).map((args) => new Heartbeat(...args)),
    fc.tuple(key, token).map((args) => new Complete(...args)),
    fc.tuple(key, token).map((args) => new Release(...args)),
    fc.tuple(key, token).map((args) => new Hold(...args)),
    fc.tuple(key, token).map((args) => new Resolve(...args)),
    fc.constantFrom(1, 50, 99, 100, 101, 999, 1_000, 1_001).map((ms) => new Pass(ms)),
    fc.constant(new Prune()),
  ];
  fc.assert(
    fc.property(fc.commands(commands, { size: "+1" }), (steps) => {
      const clock = { now: 0 };
      const real: Real = {
        clock,
        store: memoryIdempotencyStore({ max: 8, retentionMs, now: () => clock.now }),
      };
      const empty = (): Cell => ({ state: "absent", token: "", until: 0, lastFence: 0, paid: [] });
      const model: Model = { now: 0, cells: Object.fromEntries(keys.map((name) => [name, empty()])) };
      fc.modelRun(() => ({ model, real }), steps);
      expectWayOut(model, real);
    }),
    { numRuns: 800 },
  );
});
