import { randomInt } from "node:crypto";
import { assertKnownOptions } from "@countersign/core/door";
import type { AnswerStore, Awaitable } from "@countersign/idempotency";
import type {
  ContractCase,
  ContractFacility,
  IdempotencyContractOptions,
  IdempotencyStoreHarness,
  NonceStoreHarness,
  StoreHarness,
} from "./harness.ts";
import { within } from "./waiting.ts";

/** A case before it knows how stores are made. */
interface CaseDefinition<Harness> {
  readonly name: string;
  /** Default none. */
  readonly needs?: readonly ContractFacility[] | undefined;
  readonly check: (harness: Harness, run: CaseRun<Harness>) => Promise<void>;
}

/** What a case is run with that makes its own steps. */
export interface CaseRun<Harness> {
  readonly makeStore: () => Awaitable<Harness>;
  readonly seed: number;
  readonly histories: number;
  /** What the options declare missing; no case may use it. */
  readonly without: readonly ContractFacility[];
}

/** A case of the idempotency contract; it passes transactions on without looking into them. */
export type IdempotencyCase = CaseDefinition<IdempotencyStoreHarness<unknown>>;

/** A case of the nonce contract. */
export type NonceCase = CaseDefinition<NonceStoreHarness>;

/** What `makeStore` of the contract of answers resolves to. */
export type AnswerStoreHarness = StoreHarness<AnswerStore>;

/** A case of the contract of answers. */
export type AnswerCase = CaseDefinition<AnswerStoreHarness>;

/** Which of the facilities a harness has. */
export type Facilities = Readonly<Record<ContractFacility, boolean>>;

/** What is asked of a harness to run a case with it. */
export interface Contract<Harness> {
  readonly factory: string;
  readonly options: readonly (keyof IdempotencyContractOptions)[];
  readonly definitions: readonly CaseDefinition<Harness>[];
  readonly facilitiesOf: (harness: Harness) => Facilities;
}

/** What both kinds of stores have in common. */
export function commonFacilities(harness: StoreHarness<unknown>): CommonFacilities {
  return {
    clock: harness.advance !== undefined,
    another: harness.another !== undefined,
    fill: harness.fill !== undefined,
    engine: harness.engine !== undefined,
    durability: harness.engine?.durable === true,
  };
}

type CommonFacilities = Pick<Facilities, "clock" | "another" | "fill" | "engine" | "durability">;

type Closable = { close(): Awaitable<void> };

const caseTimeoutMs = 30_000;
const known: readonly string[] = [
  "clock",
  "another",
  "fill",
  "engine",
  "durability",
  "transaction",
  "retention",
  "list",
  "prune",
  "close",
] satisfies readonly ContractFacility[];

/** Binds the definitions to `makeStore`. Throws a TypeError on arguments of another kind. */
export function bindContract<Harness extends Closable>(
  contract: Contract<Harness>,
  makeStore: () => Awaitable<Harness>,
  options: IdempotencyContractOptions,
): readonly ContractCase[] {
  const { factory, definitions } = contract;
  assertKnownOptions(factory, options, contract.options);
  const { without = [], seed = randomInt(2 ** 31), histories = 60 } = options;
  for (const [name, value] of Object.entries({ seed, histories })) {
    if (Number.isSafeInteger(value) && value >= 0) continue;
    throw new TypeError(`${factory}: option ${name} must be an integer of 0 or more; got ${value}`);
  }
  if (typeof makeStore !== "function") {
    throw new TypeError(`${factory}: makeStore must be a function that returns a harness`);
  }
  const unknown = without.find((facility) => !known.includes(facility));
  if (unknown !== undefined) {
    throw new TypeError(`${factory}: option without knows ${known.join(", ")}; got ${unknown}`);
  }
  return definitions.map((definition) => {
    const missing = (definition.needs ?? []).filter((facility) => without.includes(facility));
    return {
      name: definition.name,
      run: () => runCase(contract, definition, { makeStore, seed, histories, without }),
      skipped: missing.length === 0 ? undefined : `without ${missing.join(", ")}`,
    };
  });
}

// Behind types that a test in JavaScript has not.
function assertHarness(harness: unknown, factory: string): void {
  const { store, close }: { store?: unknown; close?: unknown } = Object(harness);
  if (typeof store === "object" && store !== null && typeof close === "function") return;
  const what = "must resolve to a harness, { store, close() } and what else it has";
  const got = typeof store === "object" ? "one without close()" : "no member store: is it the store itself?";
  throw new TypeError(`${factory}: makeStore ${what}; got ${got}`);
}

async function runCase<Harness extends Closable>(
  { factory, facilitiesOf }: Contract<Harness>,
  { name, needs = [], check }: CaseDefinition<Harness>,
  run: CaseRun<Harness>,
): Promise<void> {
  const harness = await run.makeStore();
  assertHarness(harness, factory);
  try {
    const facilities = facilitiesOf(harness);
    const missing = needs.filter((facility) => !facilities[facility]);
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
