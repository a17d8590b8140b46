import type { GuardError } from "@countersign/core";
import { isPromiseLike } from "@countersign/core/door";
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
  decideClaim,
  decideFirstClaim,
  encodeText,
  isOver,
  transactionBroken,
} from "@countersign/idempotency/store";
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
import { faultOf } from "./faults.ts";
import { GatedDatabase } from "./gated-database.ts";
import { KeyRows } from "./key-rows.ts";
import { claimNonce, prepareNonceClaim } from "./nonce-store.ts";
import type { ResolvedSqliteOptions } from "./options.ts";

const name = "sqlite transactions";
const savepoint = "countersign";

// A transaction has no lease: no run counts as longer than it.
const noLease = Number.MAX_SAFE_INTEGER;

/** Why a key is held whose handler ended its transaction: nobody knows what it has paid. */
const brokenReason = "transaction-broken";

export class TransactionTable<Db extends SqliteDatabase> implements TransactionStore<Db, "sync"> {
  readonly engine = "sqlite";
  readonly mode = "sync";
  readonly retentionMs: number;
  readonly database: Db;
  readonly #gated: GatedDatabase<Db>;
  readonly #now: () => number | null;
  readonly #rows: KeyRows;
  readonly #claimNonce: SqliteStatement;
  readonly #outside: StoreGate;
  readonly #inside: StoreGate;
  /** Of the open transaction: keys that no keep() or undo() has named yet. There is one transaction at a time. */
  readonly #waiting = new Map<string, TransactionKey>();
  /** Those of them whose handler goes on behind it. */
  #outliving: readonly TransactionKey[] | undefined;
  #broken: GuardError | undefined;
  readonly #totalChanges: SqliteStatement;
  /** How many rows the connection had changed when the handler began. */
  #changesAtBegin = 0;

  constructor(database: Db, options: ResolvedSqliteOptions) {
    const { table, retentionMs, now } = options;
    this.database = database;
    this.#gated = new GatedDatabase(database);
    this.retentionMs = retentionMs;
    this.#now = now;
    this.#rows = new KeyRows(database, options);
    this.#claimNonce = prepareNonceClaim(database, table);
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
    const { nonce, keys, recovery } = claim;
    this.#assertConnection(tx);
    this.#inside.assertTransaction(claim);
    if (nonce !== undefined && claimNonce(this.#claimNonce, nonce, this.#now()) === "seen") {
      return { nonce: "seen", keys: [] };
    }
    const begun = keys.map((key) => this.#beginKey(key, recovery));
    if (keys.length === 0 || begun.some(({ status }) => status === "begun")) this.#save();
    return { nonce: "fresh", keys: begun };
  }

  keep(tx: Db, keys: readonly TransactionKey[], more: boolean): void {
    this.#assertConnection(tx);
    this.#settle(keys);
    try {
      this.#release();
    } catch (error) {
      throw this.#break(keys, "done", error);
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
      throw this.#break(keys, "held", error);
    }
  }

  free(tx: Db, keys: readonly TransactionKey[]): void {
    this.#assertConnection(tx);
    this.#settle(keys);
    // A trigger may drop the UPDATE, or take it back: the key would stay done, and nothing is paid.
    if (!keys.every((key) => this.#free(key))) throw new Error(`${name}: a key could not be freed`);
  }

  hold(
    keys: readonly TransactionKey[],
    reason: string,
    tx?: Db,
  ): ReadonlySet<string> | Promise<ReadonlySet<string>> {
    const hold = (): ReadonlySet<string> =>
      new Set(keys.filter((key) => this.#holdOwn(key, reason)).map(({ key }) => key));
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
        const cause = this.#holdAll(this.#outliving ?? [...this.#waiting.values()], "held", error);
        if (cause !== error) throw transactionBroken("it is asynchronous", cause);
      }
      throw error;
    }
  }

  written(_tx: Db): number {
    return this.#changes() - this.#changesAtBegin;
  }

  #beginKey(given: TransactionKey, recovery: "hold" | "rerun"): TransactionBegun["keys"][number] {
    const { key, token, fingerprint } = given;
    const storedKey = encodeText(key);
    const sighting = this.#rows.look(storedKey);
    const claim = { token, fingerprint, leaseMs: noLease, recovery };
    const { write, reply } =
      sighting.row === undefined ? decideFirstClaim(claim) : decideClaim(sighting.row, claim);
    if (write === undefined) return reply;
    const result = reply(0);
    if (result.status !== "acquired") {
      this.#rows.put(storedKey, sighting, write);
      return result;
    }
    const { retentionMs: durationMs } = this;
    const taken = { ...write, token, fingerprint, reason: "", raisesFence: true };
    this.#rows.put(storedKey, sighting, { ...taken, state: "done", durationMs });
    this.#waiting.set(key, given);
    return { status: "begun" };
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

  #free({ key, token }: TransactionKey): boolean {
    const storedKey = encodeText(key);
    const sighting = this.#rows.look(storedKey);
    if (sighting.row?.state === "done" && sighting.row.token === token) {
      this.#rows.put(storedKey, sighting, { state: "free", reason: "", durationMs: this.retentionMs });
    }
    return this.#rows.look(storedKey).row?.state === "free";
  }

  /** Holds a key that this token has written as done, or as held. */
  #holdOwn({ key, token }: TransactionKey, reason: string): boolean {
    const storedKey = encodeText(key);
    const sighting = this.#rows.look(storedKey);
    const { row } = sighting;
    if (row?.token !== token || (row.state !== "done" && row.state !== "held")) return false;
    this.#rows.put(storedKey, sighting, { state: "held", reason, durationMs: 0 });
    return true;
  }

  /**
   * Ends what a handler left without our savepoint: it swallowed an ON CONFLICT ROLLBACK, or sent its own COMMIT or ROLLBACK. What it wrote
   * then has committed by itself, so its keys are held. `done` leaves those that committed as done.
   */
  #break(keys: readonly TransactionKey[], committed: "done" | "held", cause: unknown): GuardError {
    this.#broken = transactionBroken(
      "SQLite or the handler ended it, and what was written after that has committed by itself",
      this.#holdAll(keys, committed, cause),
    );
    return this.#broken;
  }

  /** Returns the error to show: `cause`, or both when the keys could not be held. */
  #holdAll(keys: readonly TransactionKey[], committed: "done" | "held", cause: unknown): unknown {
    try {
      rollBack(this.database);
      withImmediateTransaction(this.database, () => {
        // They committed as done with the handler's own COMMIT, and no handler has seen them.
        for (const key of this.#waiting.values()) this.#free(key);
        for (const key of keys) this.#hold(key, committed);
      });
      return cause;
    } catch (failure) {
      return new AggregateError([cause, failure], "the key could not be held for an operator");
    }
  }

  #hold({ key, token, fingerprint }: TransactionKey, committed: "done" | "held"): void {
    const storedKey = encodeText(key);
    const sighting = this.#rows.look(storedKey);
    const { row } = sighting;
    const isOurs = row?.state === "done" && row.token === token;
    if (isOurs && committed === "done") return;
    // Another attempt has paid it, or an operator has it already.
    if (!isOurs && row?.state === "done" && !isOver(row)) return;
    if (row?.state === "held") return;
    const held = { state: "held", reason: brokenReason, durationMs: 0 } as const;
    // Another process runs it: its complete() still ends it.
    if (row?.state === "running") this.#rows.put(storedKey, sighting, held);
    else this.#rows.put(storedKey, sighting, { ...held, token, fingerprint, raisesFence: true });
  }

  #assertConnection(tx: Db): void {
    assertConnection(name, this.database, tx);
  }
}
