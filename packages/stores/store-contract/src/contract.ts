import { randomInt } from "node:crypto";
import { assertKnownOptions } from "@countersign/core/internal";
import type { Awaitable } from "@countersign/idempotency";
import type {
  ContractCase,
  ContractFacility,
  IdempotencyContractOptions,
  IdempotencyStoreHarness,
  StoreHarness,
} from "./harness.ts";
import { memberOf } from "./model/step.ts";
import { within } from "./waiting.ts";

export interface CaseDefinition<Harness> {
  readonly name: string;
  readonly needs: readonly ContractFacility[];
  readonly check: (harness: Harness, run: CaseRun<Harness>) => Promise<void>;
}

export interface CaseRun<Harness> {
  readonly makeStore: () => Awaitable<Harness>;
  readonly seed: number;
  readonly histories: number;
  /** What the options declare missing; no case may use it. */
  readonly without: readonly ContractFacility[];
}

/** Cases by the names of their rules. All of them need this of the harness. */
export function rules<Harness>(
  needs: readonly ContractFacility[],
  checks: Readonly<Record<string, CaseDefinition<Harness>["check"]>>,
): readonly CaseDefinition<Harness>[] {
  return Object.entries(checks).map(([name, check]) => ({ name, needs, check }));
}

export const idempotencyRules = rules<IdempotencyStoreHarness>;
export type IdempotencyCase = CaseDefinition<IdempotencyStoreHarness>;

export interface Contract<Harness> {
  readonly factory: string;
  /** Default `without` alone. */
  readonly options?: readonly (keyof IdempotencyContractOptions)[];
  readonly definitions: readonly CaseDefinition<Harness>[];
}

const caseTimeoutMs = 60_000;

const isThere: Readonly<Record<ContractFacility, (harness: StoreHarness<object>) => boolean>> = {
  clock: (harness) => has(harness, "advance"),
  another: (harness) => has(harness, "another"),
  fill: (harness) => has(harness, "fill"),
  engine: (harness) => has(harness, "engine"),
  durability: ({ engine }) => engine?.durable === true,
  transaction: (harness) => has(harness, "transaction") && has(harness.store, "keepIn"),
  swallow: (harness) => has(harness, "swallow"),
  waiting: ({ store }) => memberOf(Object(memberOf(store, "transactions")), "mode") === "async",
  retention: ({ store }) => has(store, "retentionMs"),
  list: ({ store }) => has(store, "list") || has(Object(memberOf(store, "idempotency")), "list"),
  prune: ({ store }) => has(store, "prune"),
  close: ({ store }) => has(store, "close"),
};

function has(holder: object, member: string): boolean {
  return memberOf(holder, member) !== undefined;
}

export function hasFacility(harness: StoreHarness<object>, facility: ContractFacility): boolean {
  return isThere[facility](harness);
}

/** Binds the definitions to `makeStore`. Throws a TypeError on arguments of another kind. */
export function bindContract<Harness extends StoreHarness<object>>(
  contract: Contract<Harness>,
  makeStore: () => Awaitable<Harness>,
  options: IdempotencyContractOptions,
): readonly ContractCase[] {
  const { factory, definitions } = contract;
  assertKnownOptions(factory, options, contract.options ?? ["without"]);
  const { without = [], seed = randomInt(2 ** 31), histories = 60 } = options;
  for (const [name, value] of Object.entries({ seed, histories })) {
    if (Number.isSafeInteger(value) && value >= 0) continue;
    throw new TypeError(`${factory}: option ${name} must be an integer of 0 or more; got ${value}`);
  }
  if (typeof makeStore !== "function") {
    throw new TypeError(`${factory}: makeStore must be a function that returns a harness`);
  }
  const unknown = without.find((facility) => !Object.hasOwn(isThere, facility));
  if (unknown !== undefined) {
    const known = Object.keys(isThere).join(", ");
    throw new TypeError(`${factory}: option without knows ${known}; got ${unknown}`);
  }
  return definitions.map((definition) => {
    const missing = definition.needs.filter((facility) => without.includes(facility));
    return {
      name: definition.name,
      run: () => runCase(factory, definition, { makeStore, seed, histories, without }),
      skipped: missing.length === 0 ? undefined : `without ${missing.join(", ")}`,
    };
  });
}

// A test in JavaScript has no types that say so.
function assertHarness(harness: unknown, factory: string): void {
  const { store, close }: { store?: unknown; close?: unknown } = Object(harness);
  if (typeof store === "object" && store !== null && typeof close === "function") return;
  const what = "must resolve to a harness, { store, close() } and what else it has";
  const got = typeof store === "object" ? "one without close()" : "no member store: is it the store itself?";
  throw new TypeError(`${factory}: makeStore ${what}; got ${got}`);
}

async function runCase<Harness extends StoreHarness<object>>(
  factory: string,
  { name, needs, check }: CaseDefinition<Harness>,
  run: CaseRun<Harness>,
): Promise<void> {
  const harness = await run.makeStore();
  assertHarness(harness, factory);
  try {
    const missing = needs.filter((facility) => !hasFacility(harness, facility));
    if (missing.length > 0) {
      throw new Error(
        `the harness lacks ${missing.join(", ")}; add it, or declare without: ${JSON.stringify(missing)}`,
      );
    }
    await within(caseTimeoutMs, check(harness, run), `the case did not end: ${name}`);
  } finally {
    await harness.close();
  }
}
