import { randomUUID } from "node:crypto";
import {
  hasMethods,
  option,
  optionError,
  readOptions,
  type OptionOwner,
  type OptionTable,
} from "@countersign/core/internal";
import { completeKey, claimKey, decideKey, renewKey } from "./key-steps.ts";
import type { KeyTable } from "./key-table.ts";
import {
  decideHold,
  decideRelease,
  decideReopen,
  decideResolve,
  recordOf,
  releasedOf,
  type Decision,
  type Retentions,
  type SeenRow,
} from "./life.ts";
import type {
  IdempotencyClaim,
  IdempotencyClaimResult,
  IdempotencyDecision,
  IdempotencyListing,
  IdempotencyListQuery,
  IdempotencyOwnership,
  IdempotencyRecord,
  IdempotencyStore,
  ReleasedKey,
} from "./store.ts";
import { StoreGate } from "./store-rules.ts";
import { answerOf, runSteps, runStepsNow, type Steps } from "./transactions/steps.ts";
import type { TransactionMode } from "./transactions/transaction-store.ts";

/** What a store of this mode returns: the value at once, or a promise of it. */
export type Returned<Mode extends TransactionMode, T> = Mode extends "sync" ? T : Promise<T>;

const dayMs = 86_400_000;

/** How long a released key keeps its fence: longer than any claim that has not seen the release can be under way. */
export const fenceMemoryMs: number = dayMs;

export interface TableStoreOptions<Mode extends TransactionMode> {
  /** `sync` for a table whose methods return no promises. */
  readonly mode: Mode;
  /** How long a done key is remembered, in milliseconds. */
  readonly retentionMs: number;
  /** Refuses arguments that no table can keep, and calls after close(). */
  readonly gate: StoreGate;
}

/** The store of a guard on a table of keys: the steps of {@link IdempotencyStore} by look, decide and write. */
export class TableStore<Mode extends TransactionMode> implements IdempotencyStore {
  readonly engine: string;
  readonly retentionMs: number;
  protected readonly gate: StoreGate;
  readonly #table: KeyTable;
  readonly #mode: Mode;
  readonly #retentions: Retentions;

  constructor(table: KeyTable, { mode, retentionMs, gate }: TableStoreOptions<Mode>) {
    this.engine = table.engine;
    this.retentionMs = retentionMs;
    this.gate = gate;
    this.#table = table;
    this.#mode = mode;
    this.#retentions = { retentionMs, fenceMemoryMs };
  }

  claim(key: string, claim: IdempotencyClaim): Returned<Mode, IdempotencyClaimResult> {
    return this.#run(
      () => this.gate.assertClaim(key, claim),
      () => claimKey(this.#table, key, claim),
    );
  }

  read(key: string): Returned<Mode, IdempotencyRecord | undefined> {
    return this.#look(key, recordOf);
  }

  readReleased(key: string): Returned<Mode, ReleasedKey | undefined> {
    return this.#look(key, releasedOf);
  }

  heartbeat(key: string, token: string, leaseMs: number): Returned<Mode, IdempotencyOwnership> {
    return this.#run(
      () => this.gate.assertHeartbeat(key, token, leaseMs),
      () => renewKey(this.#table, key, token, leaseMs),
    );
  }

  complete(key: string, token: string): Returned<Mode, IdempotencyOwnership> {
    return this.#run(
      () => this.gate.assertOwner(key, token),
      () => completeKey(this.#table, key, token, this.retentionMs),
    );
  }

  release(key: string, token: string): Returned<Mode, IdempotencyOwnership> {
    return this.#decide(
      key,
      () => this.gate.assertOwner(key, token),
      (row) => decideRelease(row, token, this.#retentions),
    );
  }

  hold(key: string, token: string, reason: string): Returned<Mode, IdempotencyOwnership> {
    return this.#decide(
      key,
      () => this.gate.assertHold(key, token, reason),
      (row) => decideHold(row, token, reason),
    );
  }

  resolve(
    key: string,
    outcome: "done" | "released",
    decision: IdempotencyDecision,
  ): Returned<Mode, "ok" | "not-held"> {
    const step = { ...decision, token: randomUUID() };
    return this.#decide(
      key,
      () => this.gate.assertResolve(key, outcome, decision),
      (row) => decideResolve(row, outcome, step, this.retentionMs),
    );
  }

  reopen(key: string, decision: IdempotencyDecision): Returned<Mode, "ok" | "not-decided"> {
    const step = { ...decision, token: randomUUID() };
    return this.#decide(
      key,
      () => this.gate.assertReopen(key, decision),
      (row) => decideReopen(row, step),
    );
  }

  prune(): Returned<Mode, number> {
    return this.#run(
      () => this.gate.assertUsable(),
      () => answerOf(this.#table.prune()),
    );
  }

  /** The caller's own connection stays open. */
  close(): Returned<Mode, void> {
    this.gate.close();
    return this.#run(
      () => {},
      () => answerOf(this.#table.close()),
    );
  }

  list(query: IdempotencyListQuery): Returned<Mode, IdempotencyListing> {
    return this.#run(
      () => this.gate.assertList(query),
      () => page(this.#table, query),
    );
  }

  #look<T>(key: string, view: (row: SeenRow | undefined) => T): Returned<Mode, T> {
    const table = this.#table;
    return this.#run(
      () => this.gate.assertKey(key),
      function* () {
        return view(yield* answerOf(table.look(key)));
      },
    );
  }

  #decide<Reply>(
    key: string,
    check: () => void,
    decide: (row: SeenRow | undefined) => Decision<Reply>,
  ): Returned<Mode, Reply> {
    return this.#run(check, () => decideKey(this.#table, key, decide));
  }

  /** Checks and runs in one: a store with promises rejects where one without throws. */
  #run<T>(check: () => void, steps: () => Steps<T>): Returned<Mode, T> {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what the mode says
    return (this.#mode === "sync" ? runNow(check, steps) : runLater(check, steps)) as Returned<Mode, T>;
  }
}

function* page(table: KeyTable, query: IdempotencyListQuery): Steps<IdempotencyListing> {
  const { rows, cursor } = yield* answerOf(table.list(query));
  const entries = rows.flatMap(({ key, row }) => {
    const record = recordOf(row);
    return record === undefined ? [] : [{ key, record }];
  });
  return { entries, cursor };
}

export interface IdempotencyStoreOptions {
  /** Where the rows of keys are kept: an object with add, look, write, list, prune and close. */
  readonly table: KeyTable;
  /** How long a paid key stays `done`, in milliseconds. Default 90 days, at least one day: a retry after it would pay again. */
  readonly retentionMs?: number | undefined;
}

const factoryName = "createIdempotencyStore";
const methods = ["add", "look", "write", "list", "prune", "close"] as const;

const optionRules = {
  table: option.own(readTable),
  retentionMs: option.integer({ min: dayMs, max: 36_500 * dayMs, fallback: 90 * dayMs }, "90 days"),
} satisfies OptionTable<IdempotencyStoreOptions, unknown>;

/** Creates the store of a guard on a table of keys that you keep. Throws an OptionError on a wrong option. */
export function createIdempotencyStore(options: IdempotencyStoreOptions): TableStore<"async"> {
  const { table, retentionMs } = readOptions(factoryName, optionRules, options);
  return new TableStore(table, { mode: "async", retentionMs, gate: new StoreGate(factoryName) });
}

function readTable(table: unknown, owner: OptionOwner, name: string): KeyTable {
  if (hasMethods<KeyTable>(table, ...methods)) return table;
  throw optionError(owner, name, `an object with the functions ${methods.join(", ")}`, table);
}

function runNow<T>(check: () => void, steps: () => Steps<T>): T {
  check();
  return runStepsNow(steps());
}

async function runLater<T>(check: () => void, steps: () => Steps<T>): Promise<T> {
  check();
  return runSteps(steps());
}
