import { randomUUID } from "node:crypto";
import type {
  Database,
  SqlValue,
  TransactionBegun,
  TransactionClaim,
  TransactionKey,
  TransactionStore,
  TransactionTurn,
} from "@countersign/idempotency";
import {
  type Added,
  type Row,
  beginKeys,
  encodeText,
  holdOwn,
  runSteps,
  transactionBroken,
} from "@countersign/idempotency/store";
import { KeyRowsWithin } from "../keys/rows-within.ts";
import { singleRow } from "../sql/values.ts";
import {
  beginScript,
  beginStatement,
  begunBy,
  literal,
  parametersIn,
  type BeginCall,
  type ValueWriter,
  type Target,
} from "./begin-statement.ts";
import { beforeCommit, commit, confirm, idOf, rolledBackBehind, transactionId } from "./commit.ts";
import { assertLeft, errorOfLeft, firstRows, leaveBroken, without } from "../transactions/key-bookkeeping.ts";
import { ServerTransactions, type OpenRun } from "../transactions/server-transactions.ts";
import { isDurable } from "./durability.ts";
import type { Engine } from "./engine.ts";
import { explained, sqlStateOf } from "./errors.ts";
import { faultOf } from "./faults.ts";
import type { ResolvedPostgresOptions } from "./options.ts";
import { PostgresRowsAlone } from "./rows-alone.ts";
import { encodeKey } from "./stored-key.ts";
import { assertTransactions } from "./transaction-proof.ts";
import { type OwnKeys, type TransactionStatements, transactionStatements } from "./transaction-statements.ts";

const name = "postgres transactions";

// SQLSTATE of a statement in a transaction in which another has failed, and of SAVEPOINT where there is none.
const swallowed = "25P02";
const noTransaction = "25P01";

const notItsKey =
  "its key was not this transaction's any more, or not running: it sent COMMIT or ROLLBACK itself, or a trigger changed the key";

interface PostgresRun extends OpenRun {
  /** The random name of this run. */
  readonly run: string;
  hasBegun: boolean;
  /** Whether its commit waits for standbys. */
  readonly isSynchronous: boolean;
  /** Of the transaction. Undefined where begin() has begun nothing, so that no handler follows. */
  id: string | undefined;
}

export class PostgresTransactions<Tx>
  extends ServerTransactions<Tx, PostgresRun>
  implements TransactionStore<Tx, "async">
{
  readonly #engine: Engine<Tx>;
  readonly #options: ResolvedPostgresOptions;
  readonly #sql: TransactionStatements;
  readonly #rows: KeyRowsWithin<Tx, "async">;
  readonly #alone: PostgresRowsAlone<Tx>;

  constructor(server: Engine<Tx>, options: ResolvedPostgresOptions, database: Database<Tx>) {
    const { engine, factory, names } = server;
    const rows = new KeyRowsWithin(name, server);
    const { retentionMs, maxTransactions } = options;
    super(
      { engine, factory, database, retentionMs, maxTransactions, faultOf },
      { name, rows, place: names.place },
    );
    this.#engine = server;
    this.#options = options;
    this.#sql = transactionStatements(options);
    this.#rows = rows;
    this.#alone = new PostgresRowsAlone(server, name);
  }

  async run<T>(work: (tx: Tx) => T | Promise<T>, turn?: TransactionTurn): Promise<T> {
    this.gate.assertUsable();
    await this.proven();
    await this.#engine.refresh();
    let ended: { readonly result: T; isCommitted: boolean } | undefined;
    try {
      return await this.runInPlace(async (tx) => {
        const { isSynchronous } = this.#engine;
        const run = randomUUID();
        const open: PostgresRun = { run, begun: [], hasBegun: false, isSynchronous, id: undefined };
        this.open.set(tx, open);
        try {
          const result = await work(tx);
          ended = { result, isCommitted: false };
          await this.database.flush?.(tx);
          if (await this.#commits(tx, open)) ended.isCommitted = true;
          return result;
        } finally {
          this.open.delete(tx);
        }
      }, turn);
    } catch (error) {
      // The library's COMMIT has failed because of late statements, which are not of the payment.
      if (ended?.isCommitted) return ended.result;
      throw ended !== undefined && sqlStateOf(error) === swallowed ? rolledBackBehind(error) : error;
    }
  }

  async begin(tx: Tx, claim: TransactionClaim): Promise<TransactionBegun> {
    this.gate.assertTransaction(claim);
    const open = this.openOf(tx);
    try {
      const { isFresh, added, id } = await this.#begin(tx, claim, open);
      if (!isFresh) return { nonce: "seen", keys: [] };
      const keys = await runSteps(beginKeys(this.#rows, tx, claim, added));
      open.hasBegun = true;
      open.begun = claim.keys.filter((_key, index) => keys[index]?.status === "begun");
      if (claim.keys.length === 0 || open.begun.length > 0) open.id = id;
      return { nonce: "fresh", keys };
    } catch (error) {
      throw explained(name, this.#options.names, error);
    }
  }

  async keep(tx: Tx, keys: readonly TransactionKey[], more: boolean): Promise<void> {
    const rows = await this.#sendLast(tx, keys, this.#keeping(tx, keys, more));
    // Not with a trigger that takes the change back, nor where the handler has undone the claim: the key would be free, and paid.
    await this.#assertAll(
      tx,
      keys,
      rows?.filter((row) => row["kept_as"] === "done"),
    );
  }

  #keeping(tx: Tx, keys: readonly TransactionKey[], more: boolean): readonly string[] {
    const own = this.#own(tx, keys);
    if (more) return this.#sql.keepSome(own);
    return keys.length === 0 ? this.#sql.keepNothing(own.run) : this.#sql.keepLast(own);
  }

  async assertOpen(tx: Tx, keys: readonly TransactionKey[]): Promise<void> {
    const rows = await this.#sendLast(tx, keys, [this.#sql.lookOwn(this.#own(tx, keys))], true);
    // Without rows the server has aborted the transaction, and nothing was written after that.
    if (rows !== undefined) await this.#assertAll(tx, keys, rows);
  }

  /** Throws, and holds the keys, unless there is a row for each of them; without keys, one row. */
  async #assertAll(
    tx: Tx,
    keys: readonly TransactionKey[],
    rows: readonly Row[] | undefined = [],
  ): Promise<void> {
    if (rows.length === Math.max(keys.length, 1)) return;
    const others = this.open.get(tx)?.begun ?? [];
    throw transactionBroken(notItsKey, await this.#holdBroken(tx, keys, others, undefined));
  }

  protected override holdAlone(
    keys: readonly TransactionKey[],
    reason: string,
  ): Promise<ReadonlySet<string>> {
    return runSteps(holdOwn(this.#alone, undefined, keys, { reason, isOpen: false }));
  }

  async written(tx: Tx, [key]: readonly TransactionKey[]): Promise<number | undefined> {
    if (key === undefined) return undefined;
    const values = [encodeKey(key.key), encodeText(key.token)];
    const [row] = await this.database.query(tx, this.#sql.writtenCommands, values);
    return row === undefined ? undefined : Number(row["commands"]);
  }

  /** Whether it has committed already, before the library does. */
  async #commits(tx: Tx, open: PostgresRun): Promise<boolean> {
    const { hasBegun, id, isSynchronous } = open;
    const last = isSynchronous ? singleRow(await this.database.query(tx, beforeCommit, [])) : undefined;
    if (!this.#hasToCommit(open)) return false;
    // Its own statement has given the transaction an id. One that was begun keeps the id of its keys: what was late may have ended it.
    const lastId = last && String(last["id"]);
    const known = hasBegun ? (id ?? lastId) : (lastId ?? (await idOf(this.database, tx)));
    if (known === undefined) return false;
    await commit(this.database, tx, known);
    if (isSynchronous && this.database.tellsUnconfirmed !== true) await confirm(this.database, tx);
    return true;
  }

  #hasToCommit({ isSynchronous }: PostgresRun): boolean {
    const { tellsRollback, tellsUnconfirmed } = this.database;
    return tellsRollback !== true || (isSynchronous && tellsUnconfirmed !== true);
  }

  /** Sends what begins the transaction. */
  async #begin(
    tx: Tx,
    claim: TransactionClaim,
    open: PostgresRun,
  ): Promise<ReturnType<typeof begunBy> & { readonly added: Added }> {
    const { nonce, leaseMs, waitMs, idleTimeoutMs: idleMs } = claim;
    const rows = firstRows(claim.keys, leaseMs);
    const id = this.#hasToCommit(open) ? transactionId : undefined;
    const given = await this.#sendBegin(tx, { run: open.run, nonce, rows, waitMs, idleMs, id });
    return { ...begunBy(given), added: this.#rows.added(rows, given) };
  }

  async #sendBegin(tx: Tx, call: BeginCall): Promise<readonly Row[]> {
    const { database } = this;
    if (database.script !== undefined) {
      return this.#send(tx, beginScript(this.#target(literal), call));
    }
    const values: SqlValue[] = [];
    return database.query(tx, beginStatement(this.#target(parametersIn(values)), call), values);
  }

  #target(write: ValueWriter): Target {
    const { names, now } = this.#options;
    return { names, write, now: now?.(), sql: this.#rows.sql };
  }

  /** Sends the last statements of a handler. Resolves to undefined after one that has failed, when the server has aborted the transaction. */
  async #sendLast(
    tx: Tx,
    keys: readonly TransactionKey[],
    statements: readonly string[],
    hasFailed = false,
  ): Promise<readonly Row[] | undefined> {
    const open = this.open.get(tx);
    const others = without(open?.begun ?? [], keys);
    try {
      const rows = await this.#send(tx, statements);
      if (open !== undefined) open.begun = others;
      return rows;
    } catch (error) {
      const state = sqlStateOf(error);
      if (state === swallowed) {
        if (hasFailed) return undefined;
        throw transactionBroken("it went on after a statement had failed; let the error through", error);
      }
      if (state === noTransaction) {
        throw transactionBroken(notItsKey, await this.#holdBroken(tx, keys, others, error));
      }
      // A deferred constraint, which is the handler's.
      if (faultOf(error) !== undefined) throw error;
      throw transactionBroken(
        "the library refused further statements; await every statement before you return",
        error,
      );
    }
  }

  /**
   * Where the handler's own ROLLBACK has freed the key, it may have paid afterwards: an operator has to look. Where its own COMMIT has
   * committed the `others`, nobody has worked on them: they are freed. On the same connection, as another one may never come. Returns the error
   * to show.
   */
  async #holdBroken(
    tx: Tx,
    keys: readonly TransactionKey[],
    others: readonly TransactionKey[],
    error: unknown,
  ): Promise<unknown> {
    return errorOfLeft(error, () => this.#leave(tx, keys, others), faultOf);
  }

  async #leave(tx: Tx, keys: readonly TransactionKey[], others: readonly TransactionKey[]): Promise<void> {
    const bound = `SELECT set_config('lock_timeout', '${this.#options.lockTimeoutMs}', true), ${isDurable}`;
    for (const text of ["ROLLBACK", "BEGIN", bound]) {
      // oxlint-disable-next-line no-await-in-loop -- one connection
      await this.database.query(tx, text, []);
    }
    const rows = await runSteps(leaveBroken(this.keys, tx, { keys, others }));
    await this.database.query(tx, "COMMIT", []);
    assertLeft(this.keys, rows, others);
  }

  async #send(tx: Tx, statements: readonly string[]): Promise<readonly Row[]> {
    if (this.database.script !== undefined) return this.database.script(tx, statements.join("; "));
    const rows: Row[] = [];
    // oxlint-disable-next-line no-await-in-loop -- one connection
    for (const statement of statements) rows.push(...(await this.database.query(tx, statement, [])));
    return rows;
  }

  protected override async prove(): Promise<void> {
    await this.#engine.ready();
    await assertTransactions(this.database);
  }

  #own(tx: Tx, keys: readonly TransactionKey[]): OwnKeys {
    const { run } = this.openOf(tx, "each step");
    const own = keys.map(({ key, token }) => ({ key: encodeKey(key), token: encodeText(token) }));
    return { keys: own, run, ...this.#now() };
  }

  #now(): { readonly now?: string } {
    const { now } = this.#options;
    return now === undefined ? {} : { now: now() };
  }
}
