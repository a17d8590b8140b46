import type { ContractCase } from "@countersign/store-contract";
import type {
  IdempotencyClaimResult,
  IdempotencyDecision,
  IdempotencyRecord,
} from "@countersign/idempotency";
import type { EngineHarness } from "../../dist/harness.js";
import type { Platform, PlatformOptions, Store } from "../platform.ts";

/** Stores by what they do wrong, and those by how the name of the case begins that must notice. */
export type FoundBy<Wrong> = Readonly<Record<string, Readonly<Record<string, Wrong>>>>;

/** A store that breaks one rule. */
export interface Listed<Wrong> {
  readonly fails: string;
  readonly does: string;
  readonly wrong: Wrong;
}

export function listed<Wrong>(stores: FoundBy<Wrong>): readonly Listed<Wrong>[] {
  return Object.entries(stores).flatMap(([fails, found]) =>
    Object.entries(found).map(([does, wrong]) => ({ fails, does, wrong })),
  );
}

/** Stores that differ in one value. */
export function each<const Item, Wrong>(
  items: readonly Item[],
  make: (item: Item) => readonly [does: string, wrong: Wrong],
): Readonly<Record<string, Wrong>> {
  return Object.fromEntries(items.map(make));
}

/** In place of a case's name: one of those that compare with the reference must notice. */
export const reference = "whatever";

/** The methods that are wrong. */
export type Change = (platform: Platform) => Partial<Store>;
export type WrongStores = FoundBy<Change | WrongStore>;

export interface WrongStore {
  readonly wrong?: Change;
  /** What is wrong is that it answers where the engine is stopped. */
  readonly ignores?: "a stopped engine";
  /** What it remembers, it remembers for each handle on its own. */
  readonly isPerHandle?: true;
  readonly platform?: PlatformOptions;
  readonly engine?: (platform: Platform) => Partial<EngineHarness>;
}

/** Each method of a store, given the base of the store too. */
type Changed<Base, Whole> = {
  readonly [Method in keyof Whole]-?: Whole[Method] extends
    | ((...given: infer Given) => infer Answer)
    | undefined
    ? (base: Base, ...given: Given) => Answer
    : never;
};

/** Makes the stores that have something else in place of one method. */
export function replacing<Base, Whole>() {
  return <Method extends keyof Whole>(method: Method, change: Changed<Base, Whole>[Method]) =>
    (base: Base) => {
      const changed = (...given: readonly unknown[]): unknown =>
        Reflect.apply(change, undefined, [base, ...given]);
      return { [method]: changed } as Partial<Whole>;
    };
}

export const instead = replacing<Platform, Store>();

/** The key's owner, when it is not absent. */
export function ownerOf({ memory }: Platform, key: string, otherwise: string): string {
  return memory.read(key)?.token ?? otherwise;
}

export function runOf(
  { memory }: Platform,
  key: string,
): Extract<IdempotencyRecord, { state: "running" }> | undefined {
  const record = memory.read(key);
  return record?.state === "running" ? record : undefined;
}

export function stateOf({ memory }: Platform, key: string): IdempotencyRecord["state"] | undefined {
  return memory.read(key)?.state;
}

export function isExpired(platform: Platform, key: string): boolean {
  const run = runOf(platform, key);
  return run !== undefined && run.remainingMs <= 0;
}

/** An operator's decision about whatever attempt has the key. */
export function decide(
  { memory }: Pick<Platform, "memory">,
  key: string,
  outcome: "done" | "released",
  given: Partial<IdempotencyDecision> = {},
): "ok" | "not-held" {
  return memory.resolve(key, outcome, { ...given, fence: memory.read(key)?.fence ?? 0 });
}

export function acquired(fence: number): IdempotencyClaimResult {
  return { status: "acquired", fence };
}

/** How far the wall clock of the process is ahead. Whole ten minutes alone, so that nothing else moves a test clock. */
export function clockAheadMs(): number {
  const aheadMs = Date.now() - (performance.timeOrigin + performance.now());
  return Math.round(aheadMs / 600_000) * 600_000;
}

/** Gives others their turn, as a round trip does. */
export function roundTrip(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}

/** The store of a platform with the wrong methods in it, which throw where a right one does. */
export function wrongStoreOn(platform: Platform, { wrong, ignores }: WrongStore): Store {
  const methods = Object.entries(wrong?.(platform) ?? {}).map(([name, method]) => {
    if (typeof method !== "function") return [name, method] as const;
    const guarded = (...parameters: unknown[]): unknown => {
      const isStopped = !platform.engine.isRunning && ignores !== "a stopped engine";
      if (isStopped) throw new Error("the engine is stopped");
      return Reflect.apply(method, undefined, parameters);
    };
    return [name, guarded] as const;
  });
  return { ...platform.store, ...(Object.fromEntries(methods) as Partial<Store>) };
}

/** What each case that fails says, by its name. */
export async function failuresOf(cases: readonly ContractCase[]): Promise<Record<string, string>> {
  const failures: Record<string, string> = {};
  for (const { name, run } of cases) {
    await run().catch((error: Error) => {
      failures[name] = error.message;
    });
  }
  return failures;
}
