import assert from "node:assert/strict";
import type { Awaitable } from "@countersign/idempotency";
import { type Store, claimBy, key, longLeaseMs, recordOf, shortLeaseMs, take } from "../claims.ts";
import type { IdempotencyStoreHarness } from "../harness.ts";
import type { IdempotencyCase } from "../contract.ts";
import { inTurn } from "../in-turn.ts";
import { advance, pass, retentionMsOf } from "../waiting.ts";

type Harness = IdempotencyStoreHarness<unknown>;
/** `fence` is that of the owner: what an operator saw before anything else came. */
type Step = (store: Store, ofKey: string, fence: number) => Awaitable<unknown>;
type Named = readonly [name: string, step: Step];
type Pair = readonly [Named, Named];

const owner = "a";
const rival = "b";

// On an expired run each of them succeeds when it comes alone.
const steps: readonly Named[] = [
  ["complete", (store, ofKey) => store.complete(ofKey, owner)],
  ["claim under rerun", (store, ofKey) => store.claim(ofKey, claimBy(rival))],
  ["claim under hold", (store, ofKey) => store.claim(ofKey, claimBy(rival, { recovery: "hold" }))],
  ["the owner's claim", (store, ofKey) => store.claim(ofKey, claimBy(owner))],
  ["heartbeat", (store, ofKey) => store.heartbeat(ofKey, owner, longLeaseMs)],
  ["release", (store, ofKey) => store.release(ofKey, owner)],
  ["hold", (store, ofKey) => store.hold(ofKey, owner, "in doubt")],
  ["resolve as released", (store, ofKey, fence) => store.resolve(ofKey, "released", { fence })],
  ["resolve as done", (store, ofKey, fence) => store.resolve(ofKey, "done", { fence })],
];

const onHeldKeys = new Set(["complete", "claim under rerun", "resolve as released", "resolve as done"]);

/** Two steps at once: one of them comes first, whichever it is. */
export const orderCases: readonly IdempotencyCase[] = [
  {
    name: "of two steps at once on an expired run one comes first, and the other one sees it",
    check: (harness) => assertInSomeOrder(harness, pairsOf(steps), async () => {}),
  },
  {
    name: "of two steps at once on a held key one comes first, and the other one sees it",
    async check(harness) {
      const pairs = pairsOf(steps.filter(([name]) => onHeldKeys.has(name)));
      await assertInSomeOrder(harness, pairs, async (store, ofKey) => store.hold(ofKey, owner, "in doubt"));
    },
  },
  {
    name: "pruning leaves a key alone that is claimed again meanwhile",
    needs: ["clock", "retention"],
    async check(harness) {
      const { store } = harness;
      const keys = Array.from({ length: 20 }, (_, index) => `${key}-${index}`);
      await inTurn(keys, async (ofKey) => {
        await take(store, owner, { key: ofKey });
        await store.complete(ofKey, owner);
      });
      await advance(harness, retentionMsOf(harness) + 1);
      const claims = (some: readonly string[]) =>
        some.map(async (ofKey) => take(store, rival, { key: ofKey }));
      await Promise.all([...claims(keys.slice(0, 10)), store.prune(), ...claims(keys.slice(10))]);
      await inTurn(keys, async (ofKey) => {
        const record = await recordOf(store, ofKey);
        assert.equal(record?.state, "run", "a key that is claimed again must not be pruned");
        assert.equal(record.token, rival, "a key that is claimed again must be its new owner's");
      });
    },
  },
];

/** Each with each, and with itself: of two operators one decides. */
function pairsOf(some: readonly Named[]): Pair[] {
  return some.flatMap((one, at) => some.slice(at).map((other): Pair => [one, other]));
}

type Order = readonly [first: 0 | 1, second: 0 | 1];

const orders: readonly Order[] = [
  [0, 1],
  [1, 0],
];

/**
 * One after the other, in both orders, a pair shows how it may end; at once it must end in one of these ways. What is not raced
 * goes at once as well, so that the case ends in time on an engine that is far away.
 */
async function assertInSomeOrder(
  harness: Harness,
  pairs: readonly Pair[],
  prepare: (store: Store, ofKey: string) => Promise<unknown>,
): Promise<void> {
  const { store } = harness;
  const fences = new Map<string, number>();
  const takeOne = async (ofKey: string): Promise<void> => {
    fences.set(ofKey, await take(store, owner, { key: ofKey, leaseMs: shortLeaseMs }));
  };
  await inTurn(pairs, (pair) => Promise.all(keysOf(pair).map(takeOne)));
  const endOf = (pair: Pair, order: Order, timing: Timing): Promise<string> => {
    const ofKey = keyOf(pair, order, timing);
    return takeBoth({ store, ofKey, fence: fences.get(ofKey) ?? 0 }, pair, { order, timing });
  };
  await pass(harness, shortLeaseMs);
  await inTurn(pairs, (pair) => Promise.all(keysOf(pair).map((ofKey) => prepare(store, ofKey))));
  await inTurn(pairs, async (pair) => {
    const allowed = await Promise.all(orders.map((order) => endOf(pair, order, "in turn")));
    await inTurn(orders, async (order) => {
      const end = await endOf(pair, order, "at once");
      assert.ok(
        allowed.includes(end),
        `${nameOf(pair)} at once gave ${end}; one after the other: ${allowed.join("; or ")}`,
      );
    });
  });
}

type Timing = "in turn" | "at once";

function keysOf(pair: Pair): string[] {
  return orders.flatMap((order) => [keyOf(pair, order, "in turn"), keyOf(pair, order, "at once")]);
}

/** Takes both steps. Returns what came of them, without what each run has of its own. */
async function takeBoth(
  { store, ofKey, fence }: { readonly store: Store; readonly ofKey: string; readonly fence: number },
  pair: Pair,
  { order, timing }: { readonly order: Order; readonly timing: Timing },
): Promise<string> {
  const answers: string[] = [];
  const step = async (at: 0 | 1): Promise<void> => {
    answers[at] = answerOf(await pair[at][1](store, ofKey, fence));
  };
  // An engine may lose its patience with a row that the other step has: then nothing happened, and the step is taken behind that one.
  const raced = async (at: 0 | 1): Promise<(() => Promise<void>) | undefined> => {
    try {
      await step(at);
      return undefined;
    } catch {
      return () => step(at);
    }
  };
  // One connection answers in the order of the calls: at once, too, each step is called first one time.
  if (timing === "in turn") await inTurn(order, step);
  else await inTurn(await Promise.all(order.map(raced)), async (again) => again?.());
  const record = await recordOf(store, ofKey);
  const state = record === undefined ? "absent" : `${record.state} of ${holderOf(record.token)}`;
  return `${answers.join(" and ")}, then ${state}`;
}

// What an operator ended belongs to a token that no one has.
function holderOf(token: string): string {
  return token === owner || token === rival ? token : "nobody";
}

function nameOf([[one], [other]]: Pair): string {
  return `${one} and ${other}`;
}

function keyOf(pair: Pair, order: Order, timing: Timing): string {
  return `${nameOf(pair)} ${order.join("-")} ${timing}`;
}

function answerOf(value: unknown): string {
  return typeof value === "object" && value !== null && "status" in value
    ? String(value.status)
    : String(value);
}
