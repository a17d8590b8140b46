import type { GuardError, NonceClaim } from "@countersign/core";
import { isPromiseLike } from "@countersign/core/internal";
import type {
  Awaitable,
  TransactionBegun,
  TransactionClaim,
  TransactionFault,
  TransactionKey,
  TransactionStore,
} from "@countersign/idempotency";
import {
  StoreGate,
  beginKeys,
  holdOwn,
  runStepsNow,
  transactionBroken,
  transactionEnd,
} from "@countersign/idempotency/store";
import { KeyRowsWithin } from "../keys/rows-within.ts";
import { isNewNonce, nonceStatement } from "../keys/nonce-table.ts";
import { raw } from "../sql/sql.ts";
import { freeBegun, leaveBroken, type KeysOfRun } from "../transactions/key-bookkeeping.ts";
import {
  type SqliteDatabase,
  type SqliteStatement,
  assertConnection,
  assertInTransaction,
  createGate,
  endTransaction,
  integerOf,
  rollBack,
  singleRow,
  withImmediateTransaction,
} from "./connection.ts";
import { whenWritable } from "./durability.ts";
import type { Engine } from "./engine.ts";
import { faultOf } from "./faults.ts";
import { GatedDatabase } from "./gated-database.ts";
import type { ResolvedSqliteOptions } from "./options.ts";

const name = "sqlite transactions";
const savepoint = "countersign";

export class TransactionTable<Db extends SqliteDatabase> implements TransactionStore<Db, "sync"> {
  readonly engine = "sqlite";
  readonly mode = "sync";
  readonly retentionMs: number;
  readonly database: Db;
  readonly #gated: GatedDatabase<Db>;
  readonly #rows: KeyRowsWithin<Db, "sync">;
  readonly #keys: KeysOfRun<Db>;
  readonly #engine: Engine<Db>;
  readonly #outside: StoreGate;
  readonly #inside: StoreGate;
  /** The keys of the open transaction that are neither kept nor freed yet. There is one transaction at a time. */
  readonly #waiting = new Map<string, TransactionKey>();
  /** Those of them whose handler goes on behind it. */
  #outliving: readonly TransactionKey[] | undefined;
  #broken: GuardError | undefined;
  readonly #totalChanges: SqliteStatement;
  /** How many rows the connection had changed when the handler began. */
  #changesAtBegin = 0;

  constructor(engine: Engine<Db>, options: ResolvedSqliteOptions) {
    const { database } = engine;
    const { retentionMs } = options;
    this.#engine = engine;
    this.database = database;
    this.#gated = new GatedDatabase(database);
    this.retentionMs = retentionMs;
    this.#rows = new KeyRowsWithin(name, engine);
    this.#keys = { name, rows: this.#rows, retentionMs, place: `${options.table}_*` };
    this.#totalChanges = database.prepare("SELECT total_changes() AS rows");
    this.#outside = createGate(name, database);
    this.#inside = new StoreGate(name, () => assertInTransaction(name, database));
  }

  close(): void {
    this.#outside.close();
    this.#inside.close();
  }

  async run<T>(work: (tx: Db) => Awaitable<T>): Promise<T> {
    const assertUsable = () => this.#outside.assertUsable();
    return whenWritable({ name, database: this.database, assertUsable }, () => {
      this.#waiting.clear();
      this.#outliving = undefined;
      this.#broken = undefined;
      return this.#runBegun(work);
    });
  }

  begin(tx: Db, claim: TransactionClaim): TransactionBegun {
    const { nonce, keys } = claim;
    this.#assertConnection(tx);
    this.#inside.assertTransaction(claim);
    if (nonce !== undefined && !this.#claims(nonce)) return { nonce: "seen", keys: [] };
    const begun = runStepsNow(beginKeys(this.#rows, this.database, claim));
    for (const [index, key] of keys.entries()) {
      if (begun[index]?.status === "begun") this.#waiting.set(key.key, key);
    }
    if (keys.length === 0 || begun.some(({ status }) => status === "begun")) this.#save();
    return { nonce: "fresh", keys: begun };
  }

  keep(tx: Db, keys: readonly TransactionKey[], more: boolean): void {
    this.#assertConnection(tx);
    this.#settle(keys);
    try {
      this.#release();
      for (const key of keys) this.#complete(key);
    } catch (error) {
      throw this.#break(keys, error);
    }
    if (more) this.#save();
  }

  openGate(_tx: Db): void {
    this.#gated.open();
    this.#changesAtBegin = this.#changes();
  }

  closeGate(_tx: Db): undefined {
    this.#gated.close();
  }

  assertOpen(tx: Db, keys: readonly TransactionKey[]): void {
    this.#assertConnection(tx);
    try {
      this.#release();
    } catch (error) {
      this.#settle(keys);
      throw this.#break(keys, error);
    }
  }

  free(tx: Db, keys: readonly TransactionKey[]): void {
    this.#assertConnection(tx);
    this.#settle(keys);
    runStepsNow(freeBegun(this.#keys, tx, keys));
  }

  hold(
    keys: readonly TransactionKey[],
    reason: string,
    tx?: Db,
  ): ReadonlySet<string> | Promise<ReadonlySet<string>> {
    const isOpen = tx !== undefined;
    const hold = (): ReadonlySet<string> =>
      runStepsNow(holdOwn(this.#rows, this.database, keys, { reason, isOpen }));
    if (tx !== undefined) {
      this.#assertConnection(tx);
      return hold();
    }
    const assertUsable = () => this.#outside.assertUsable();
    return whenWritable({ name, database: this.database, assertUsable }, () =>
      endTransaction(`${name}: hold`, this.database, hold),
    );
  }

  outlived(_tx: Db, keys: readonly TransactionKey[]): void {
    this.#outliving = keys;
  }

  faultOf(error: unknown): TransactionFault | undefined {
    return faultOf(error);
  }

  #runBegun<T>(work: (tx: Db) => Awaitable<T>): T {
    let answer: Awaitable<T> | undefined;
    try {
      this.#gated.open();
      return endTransaction(`${name}: run`, this.database, () => {
        answer = work(this.#gated.tx);
        this.#gated.close();
        return answer;
      });
    } catch (error) {
      this.#gated.close();
      // Behind its first await the handler goes on, and each of its statements commits by itself. No handler has seen the keys behind its own.
      if (isPromiseLike(answer)) {
        const cause = this.#holdAll(this.#outliving ?? [...this.#waiting.values()], error);
        if (cause !== error) throw transactionBroken("it is asynchronous", cause);
      }
      throw error;
    }
  }

  written(_tx: Db): number {
    return this.#changes() - this.#changesAtBegin;
  }

  #claims(nonce: NonceClaim): boolean {
    const engine = this.#engine;
    return isNewNonce(engine.run(nonceStatement(engine, nonce, engine.now(), raw("1 = 1"))));
  }

  #changes(): number {
    return integerOf(singleRow(this.#totalChanges.get())["rows"]);
  }

  #save(): void {
    this.database.exec(`SAVEPOINT ${savepoint}`);
  }

  #release(): void {
    this.database.exec(`RELEASE ${savepoint}`);
  }

  /** What ended a broken transaction stays decided. */
  #settle(keys: readonly TransactionKey[]): void {
    if (this.#broken !== undefined) throw this.#broken;
    for (const { key } of keys) this.#waiting.delete(key);
  }

  /** Makes a key done that this token runs. Throws on any other: the handler has undone the claim, or it is another transaction's. */
  #complete({ key, token }: TransactionKey): void {
    const { from: states, write } = transactionEnd(this.retentionMs);
    if (!this.#rows.write(this.database, key, write, { token, states })) {
      throw new Error(`${name}: a key was not running any more at the last statement`);
    }
    // A trigger may take the UPDATE back: the key would stay running, and is paid.
    if (this.#rows.look(this.database, [key]).get(key)?.state !== "done") {
      throw new Error(`${name}: SQLite did not write a key; look for triggers`);
    }
  }

  /**
   * Ends what a handler left without our savepoint: it swallowed an ON CONFLICT ROLLBACK, or sent its own COMMIT or ROLLBACK. What it wrote
   * then has committed by itself, so its keys are held.
   */
  #break(keys: readonly TransactionKey[], cause: unknown): GuardError {
    this.#broken = transactionBroken(
      "SQLite or the handler ended it, and what was written after that has committed by itself",
      this.#holdAll(keys, cause),
    );
    return this.#broken;
  }

  /** Returns the error to show: `cause`, or both when the keys could not be held. */
  #holdAll(keys: readonly TransactionKey[], cause: unknown): unknown {
    try {
      rollBack(this.database);
      withImmediateTransaction(this.database, () => {
        runStepsNow(leaveBroken(this.#keys, this.database, { keys, others: [...this.#waiting.values()] }));
      });
      return cause;
    } catch (failure) {
      return new AggregateError([cause, failure], "the key could not be held for an operator");
    }
  }

  #assertConnection(tx: Db): void {
    assertConnection(name, this.database, tx);
  }
}
