import type {
  ClosedStatements,
  Database,
  TransactionFault,
  TransactionKey,
  TransactionTurn,
} from "@countersign/idempotency";
import { holdOwn, runSteps, StoreGate } from "@countersign/idempotency/store";
import type { KeyRowsWithin } from "../keys/rows-within.ts";
import { withinCheckTime } from "../sql/check-deadline.ts";
import { Places, placesOf } from "./places.ts";
import { freeBegun, without, type KeysOfRun } from "./key-bookkeeping.ts";

/** A run of a transaction, while it is open. */
export interface OpenRun {
  /** The keys that were begun, and neither kept nor freed yet. */
  begun: readonly TransactionKey[];
}

/** What a server gives to its store of transactions. */
interface ServerOfTransactions<Tx> {
  readonly engine: string;
  readonly factory: string;
  readonly database: Database<Tx>;
  readonly retentionMs: number;
  readonly maxTransactions: number | undefined;
  readonly faultOf: (error: unknown) => TransactionFault | undefined;
}

/** What the stores of transactions share on servers: which runs are open, their gates, and the keys that are freed or held. */
export abstract class ServerTransactions<Tx, Open extends OpenRun> {
  readonly engine: string;
  readonly mode = "async";
  readonly retentionMs: number;
  readonly database: Database<Tx>;
  readonly faultOf: (error: unknown) => TransactionFault | undefined;
  protected readonly gate: StoreGate;
  protected readonly keys: KeysOfRun<Tx> & { readonly rows: KeyRowsWithin<Tx, "async"> };
  protected readonly open = new Map<Tx, Open>();
  readonly #factory: string;
  #places: Places | undefined;
  #proof: Promise<void> | undefined;

  constructor(
    server: ServerOfTransactions<Tx>,
    keys: Pick<KeysOfRun<Tx>, "name" | "place"> & { readonly rows: KeyRowsWithin<Tx, "async"> },
  ) {
    this.engine = server.engine;
    this.retentionMs = server.retentionMs;
    this.database = server.database;
    this.faultOf = server.faultOf;
    this.gate = new StoreGate(keys.name);
    this.keys = { ...keys, retentionMs: server.retentionMs };
    this.#factory = server.factory;
    if (server.maxTransactions !== undefined) this.#places = new Places(server.maxTransactions);
  }

  whyWaiting(): string | undefined {
    const places = this.#places;
    if (places?.areTaken !== true) return undefined;
    return `${places.most} transactions are open, and createStores() lets no more be open at once (option maxTransactions)`;
  }

  openGate(tx: Tx): void {
    this.database.gateOf(tx)?.open();
  }

  async closeGate(tx: Tx, succeeded: boolean): Promise<ClosedStatements> {
    if (succeeded) await this.database.flush?.(tx);
    return (await this.database.gateOf(tx)?.close()) ?? { unanswered: 0, hasWritten: false, idleCommands: 0 };
  }

  async free(tx: Tx, keys: readonly TransactionKey[]): Promise<void> {
    await runSteps(freeBegun(this.keys, tx, keys));
    const open = this.open.get(tx);
    if (open !== undefined) this.forget(open, keys);
  }

  async hold(keys: readonly TransactionKey[], reason: string, tx?: Tx): Promise<ReadonlySet<string>> {
    if (tx === undefined) return this.holdAlone(keys, reason);
    return runSteps(holdOwn(this.keys.rows, tx, keys, { reason, isOpen: true }));
  }

  close(): void {
    this.gate.close();
  }

  /** Opens a transaction of the library when there is a place for one. */
  protected runInPlace<T>(work: (tx: Tx) => Promise<T>, turn: TransactionTurn = {}): Promise<T> {
    const run = (): Promise<T> => this.database.run(work);
    // A library may know its pool only now.
    this.#places ??= placesOf(this.database);
    return this.#places?.within(turn, run) ?? run();
  }

  /** Proves, on no real key, that the library's transactions are some, and may write. */
  protected abstract prove(): Promise<void>;

  /** As {@link ServerTransactions.hold} in no transaction of the caller. */
  protected abstract holdAlone(keys: readonly TransactionKey[], reason: string): Promise<ReadonlySet<string>>;

  /** Keys that were freed: nobody has to end them any more. */
  protected forget(open: Open, keys: readonly TransactionKey[]): void {
    open.begun = without(open.begun, keys);
  }

  protected openOf(tx: Tx, steps = "begin()"): Open {
    const open = this.open.get(tx);
    if (open !== undefined) return open;
    throw new TypeError(`${this.keys.name}: ${steps} needs what run() has given`);
  }

  /** Proves once. After a failure the next run proves again. */
  protected async proven(): Promise<void> {
    this.#proof ??= withinCheckTime(this.#factory, this.prove());
    try {
      await this.#proof;
    } catch (error) {
      this.#proof = undefined;
      throw error;
    }
  }
}
