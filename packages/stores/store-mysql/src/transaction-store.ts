import { withDeadline } from "@countersign/core";
import type {
  ClosedStatements,
  TransactionBegun,
  TransactionClaim,
  TransactionFault,
  TransactionKey,
  TransactionStore,
} from "@countersign/idempotency";
import {
  type Row,
  type SeenRow,
  StoreGate,
  beginKeys,
  byKey,
  decideOwn,
  fenceMemoryMs,
  firstBegin,
  freeKeys,
  holdBroken,
  holdOwn,
  isAnyRun,
  runSteps,
  transactionBroken,
  transactionNotRolledBack,
} from "@countersign/idempotency/store";
import { checkLate, checkTimeoutMs, type Engine } from "./engine.ts";
import { errnoOf, faultOf, isInterrupted, noSavepoint } from "./errors.ts";
import { KeyStatements } from "./key-statements.ts";
import { rowOf } from "./key-table.ts";
import { isOwnNonce, nonceStatement } from "./nonce-store.ts";
import type { ResolvedMysqlOptions } from "./options.ts";
import { MysqlRowsWithin } from "./rows-within.ts";
import { endSession, giveSessionBack, rowsLeft, takeSession } from "./session.ts";
import { type Statement, clockOf, inlined } from "./statement-parts.ts";
import { assertTransactions, releaseSavepoint, setSavepoint } from "./transaction-proof.ts";
import { isTrue } from "./values.ts";

const name = "mysql transaction store";

const rollbackTimeoutMs = 5_000;

const withoutTransactions =
  "a table that it has written has no transactions; make the handler's tables with ENGINE = InnoDB";

const rollBack: Statement = ["ROLLBACK", []];
const commit: Statement = ["COMMIT", []];

// Of keys that others want too: two claims that wait for a third one's rollback are a deadlock to InnoDB.
const maxHoldAttempts = 20;

interface OpenTransaction {
  /** Whether its session has our settings. */
  isTaken: boolean;
  /** Whether our savepoint is set, by which COMMIT knows the transaction: not behind a seen nonce. */
  isMarked: boolean;
  /** Those that were begun and neither kept nor freed. */
  begun: readonly TransactionKey[];
  /** Those whose handlers may have written something. */
  run: readonly TransactionKey[];
  /** Whether ROLLBACK has left what the handler wrote in a table without transactions. */
  hasLeftRows: boolean;
}

export class MysqlTransactions<Tx> implements TransactionStore<Tx, "async"> {
  readonly engine = "mariadb";
  readonly mode = "async";
  readonly retentionMs: number;
  readonly #server: Engine<Tx>;
  readonly #options: ResolvedMysqlOptions<Tx>;
  readonly #now: () => string;
  readonly #sql: KeyStatements;
  readonly #rows: MysqlRowsWithin<Tx>;
  readonly #gate = new StoreGate(name);
  readonly #open = new Map<Tx, OpenTransaction>();
  #proof: Promise<void> | undefined;

  constructor(engine: Engine<Tx>, options: ResolvedMysqlOptions<Tx>) {
    this.#server = engine;
    this.#options = options;
    this.#now = clockOf(options);
    this.#sql = new KeyStatements(options, this.#now);
    this.#rows = new MysqlRowsWithin(name, engine, this.#sql);
    this.retentionMs = options.retentionMs;
  }

  async run<T>(work: (tx: Tx) => T | Promise<T>): Promise<T> {
    await this.#server.ready();
    await this.#prove();
    let isCommitted = false;
    try {
      return await this.#server.database.run(async (tx) => {
        const session: OpenTransaction = {
          isTaken: false,
          isMarked: false,
          begun: [],
          run: [],
          hasLeftRows: false,
        };
        this.#open.set(tx, session);
        try {
          const result = await work(tx);
          await this.#server.database.flush?.(tx);
          if (session.isTaken) {
            await this.#commit(tx, session);
            isCommitted = true;
          }
          return result;
        } catch (error) {
          if (session.isTaken) await this.#rollBack(tx, session);
          throw session.hasLeftRows ? transactionNotRolledBack(withoutTransactions, error) : error;
        } finally {
          this.#open.delete(tx);
        }
      });
    } catch (error) {
      if (!isCommitted) throw error;
      throw unknownBehind("the library failed behind COMMIT, as by a hook of the app's");
    }
  }

  async begin(tx: Tx, claim: TransactionClaim): Promise<TransactionBegun> {
    this.#gate.assertTransaction(claim);
    const session = this.#open.get(tx);
    if (session === undefined) throw new TypeError(`${name}: begin() needs what run() has given`);
    const now = this.#now();
    const { nonce, leaseMs, waitMs, idleTimeoutMs } = claim;
    const ordered = [...claim.keys];
    ordered.sort(byKey);
    const news = ordered.map((key) => ({ key: key.key, row: firstBegin(key, leaseMs) }));
    const take = session.isTaken ? [] : [takeSession(waitMs, idleTimeoutMs)];
    const then = [...this.#rows.adding(news), setSavepoint];
    // Before it is sent: it may take effect although its reply is lost.
    session.isTaken = true;
    const rows = await (nonce === undefined
      ? this.#send(tx, [...take, ...then])
      : this.#sendIfFresh(
          tx,
          [...take, nonceStatement({ nonces: this.#options.names.nonces, now }, nonce)],
          then,
        ));
    if (rows === undefined) return { nonce: "seen", keys: [] };
    session.isMarked = true;
    const keys = await runSteps(beginKeys(this.#rows, tx, claim, this.#rows.added(news, rows)));
    session.begun = claim.keys.filter((_key, index) => keys[index]?.status === "begun");
    session.run = session.begun;
    return { nonce: "fresh", keys };
  }

  async keep(tx: Tx, keys: readonly TransactionKey[], _more: boolean): Promise<void> {
    // Done behind the end of the savepoint: not where the transaction is another one. A savepoint also behind the last key: COMMIT finds out
    // by it whether the transaction is still the one that has claimed.
    const rows = await this.#end(tx, keys, [releaseSavepoint, ...this.#sql.doneAll(keys), setSavepoint]);
    // Not with a trigger that takes the change back, nor where the handler has undone the claim: the key would be free, and paid.
    if (rows.filter((row) => row["kept_as"] === "done").length === keys.length) return;
    throw transactionBroken(
      "its key was not running any more at the last statement; look for a ROLLBACK of the handler's, and for triggers",
      await this.#hold(tx, keys, this.#open.get(tx)?.begun ?? [], undefined),
    );
  }

  openGate(tx: Tx): void {
    this.#server.database.gateOf(tx)?.open();
  }

  async closeGate(tx: Tx, succeeded: boolean): Promise<ClosedStatements> {
    const { database } = this.#server;
    if (succeeded) await database.flush?.(tx);
    return (await database.gateOf(tx)?.close()) ?? { unanswered: 0, hasWritten: false, idleCommands: 0 };
  }

  async assertOpen(tx: Tx, keys: readonly TransactionKey[]): Promise<void> {
    await this.#end(tx, keys, [releaseSavepoint, setSavepoint]);
  }

  async free(tx: Tx, keys: readonly TransactionKey[]): Promise<void> {
    const freed = await this.#free(tx, keys);
    // Else they would commit as running, and nobody runs them. A trigger can take the change back.
    if (!keys.every(({ key }) => freed.get(key)?.state === "free")) throw this.#notFreed();
    const session = this.#open.get(tx);
    if (session === undefined) return;
    session.begun = without(session.begun, keys);
    session.run = without(session.run, keys);
  }

  async hold(keys: readonly TransactionKey[], reason: string, tx?: Tx): Promise<ReadonlySet<string>> {
    if (tx !== undefined) return runSteps(holdOwn(this.#rows, tx, keys, { reason, isOpen: true }));
    const own = new Set<string>();
    for (const { key, token } of keys) {
      // oxlint-disable-next-line no-await-in-loop -- one key after the other
      if (await this.#holdOwn(key, token, reason)) own.add(key);
    }
    return own;
  }

  /** Looks behind the end of each transaction that has the row: also of one whose connection was lost, and which the server has not ended yet. */
  async #holdOwn(key: string, token: string, reason: string): Promise<boolean> {
    const [row] = await this.#server.alone(name, ...this.#sql.lookLocked(key));
    const seen = row && rowOf(row);
    const decided = decideOwn(seen, token, reason, false);
    if (decided === undefined || seen === undefined) return false;
    const { write: change } = decided;
    const { fence } = seen;
    if (change !== undefined)
      await this.#server.change(name, ...this.#sql.write(key, { change, seen, fence }));
    return true;
  }

  faultOf(error: unknown): TransactionFault | undefined {
    return faultOf(error);
  }

  get database(): object {
    return this.#server.database;
  }

  close(): void {
    this.#gate.close();
  }

  /** Claims the nonce, and goes on if it was fresh. Gives the rows of `then`. */
  async #sendIfFresh(
    tx: Tx,
    claim: readonly Statement[],
    then: readonly Statement[],
  ): Promise<readonly Row[] | undefined> {
    const isScript = this.#server.database.script !== undefined;
    const all = `IF ${isOwnNonce} THEN\n${then.map(inlined).join(";\n")};\nEND IF`;
    const [claimed, ...rows] = await this.#send(tx, isScript ? [...claim, [all, []]] : claim);
    if (claimed === undefined) throw new Error(`${name}: the server answered without the nonce`);
    if (!isTrue(claimed["is_own"])) return undefined;
    return isScript ? rows : this.#send(tx, then);
  }

  /**
   * Commits by giving the session back. The library's own COMMIT finds nothing left to do. A late statement of the handler may have met a
   * deadlock, which rolls all of it back, or may have changed a table's definition, which commits: nobody knows.
   */
  async #commit(tx: Tx, { isMarked }: OpenTransaction): Promise<void> {
    const release = isMarked ? [releaseSavepoint] : [];
    try {
      await this.#server.sendTogether(tx, name, [...release, giveSessionBack]);
    } catch (error) {
      const errno = errnoOf(error);
      if (errno === noSavepoint) {
        throw unknownBehind(
          "the transaction ended between the last statement and COMMIT; await every statement of the handler",
        );
      }
      if (isInterrupted(errno)) {
        throw unknownBehind(
          "COMMIT was interrupted, by KILL QUERY or max_statement_time, and may have taken effect",
        );
      }
      throw error;
    }
  }

  /** Here rather than by the library, whose ROLLBACK is too late to give the session back. */
  async #rollBack(tx: Tx, session: OpenTransaction): Promise<void> {
    try {
      await withDeadline(
        this.#rollBackAndHold(tx, session),
        rollbackTimeoutMs,
        () => new Error("ROLLBACK was not answered in time"),
      );
    } catch {
      // Not waited for: the connection may be lost.
      this.#send(tx, [rollBack, endSession]).catch(() => {});
    }
  }

  /** What a table without transactions has kept may be the payment: an operator has to look. */
  async #rollBackAndHold(tx: Tx, session: OpenTransaction): Promise<void> {
    const { run } = session;
    if (run.length === 0) {
      // Together: a first message that has failed takes nothing but a ROLLBACK after it.
      await this.#send(tx, [rollBack, giveSessionBack]);
      return;
    }
    // A compound statement, which is no single one everywhere.
    const left = this.#server.database.script === undefined ? [] : rowsLeft;
    const rows = await this.#send(tx, [rollBack, ...left]);
    session.hasLeftRows = rows.some((row) => isTrue(row["rows_left"]));
    if (session.hasLeftRows) {
      await runSteps(holdBroken(this.#rows, tx, run));
      await this.#send(tx, [commit]);
    }
    await this.#send(tx, [giveSessionBack]);
  }

  async #send(tx: Tx, statements: readonly Statement[]): Promise<readonly Row[]> {
    return this.#server.send(tx, name, statements);
  }

  async #end(
    tx: Tx,
    keys: readonly TransactionKey[],
    statements: readonly Statement[],
  ): Promise<readonly Row[]> {
    const session = this.#open.get(tx);
    const unseen = without(session?.begun ?? [], keys);
    try {
      const rows = await this.#send(tx, statements);
      if (session !== undefined) session.begun = unseen;
      return rows;
    } catch (error) {
      if (errnoOf(error) !== noSavepoint) throw error;
      throw transactionBroken(
        "it ended before its handler did: the handler swallowed a deadlock, changed a table's definition (which commits), or sent COMMIT or ROLLBACK",
        await this.#hold(tx, keys, unseen, error),
      );
    }
  }

  /**
   * What ended the transaction may have committed a part of the payment, as DDL does, with keys that no handler has seen; or the handler may
   * have paid after a rollback: an operator has to look. Another connection may never come, in a full pool. Returns the error to show.
   */
  async #hold(
    tx: Tx,
    keys: readonly TransactionKey[],
    unseen: readonly TransactionKey[],
    error: unknown,
  ): Promise<unknown> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        // oxlint-disable-next-line no-await-in-loop -- one attempt after the other
        await this.#leave(tx, keys, unseen);
        return error;
      } catch (failure) {
        if (faultOf(failure) === "conflict" && attempt < maxHoldAttempts) continue;
        return new AggregateError([error, failure], "the keys could not be left as they should be");
      }
    }
  }

  async #leave(tx: Tx, keys: readonly TransactionKey[], unseen: readonly TransactionKey[]): Promise<void> {
    await this.#send(tx, [rollBack]);
    if (keys.length > 0) await runSteps(holdBroken(this.#rows, tx, keys));
    const rows = await this.#free(tx, unseen);
    await this.#send(tx, [commit]);
    // After a ROLLBACK there was nothing to free.
    if (isAnyRun(rows, unseen)) throw this.#notFreed();
  }

  async #free(tx: Tx, keys: readonly TransactionKey[]): Promise<ReadonlyMap<string, SeenRow>> {
    if (keys.length === 0) return new Map();
    const { retentionMs } = this;
    return runSteps(freeKeys(this.#rows, tx, keys, { retentionMs, fenceMemoryMs }));
  }

  #notFreed(): Error {
    return new Error(
      `${name}: the server did not free the keys ${this.#options.names.place}; look for triggers`,
    );
  }

  /** Once, on no real key: the library's transaction is one, and may write. */
  async #prove(): Promise<void> {
    const { names } = this.#options;
    this.#proof ??= withDeadline(assertTransactions(this.#server.database, names), checkTimeoutMs, checkLate);
    try {
      await this.#proof;
    } catch (error) {
      this.#proof = undefined;
      throw error;
    }
  }
}

function without(
  keys: readonly TransactionKey[],
  ended: readonly TransactionKey[],
): readonly TransactionKey[] {
  return keys.filter(({ key }) => ended.every((each) => each.key !== key));
}

/** Without the server's error as its cause: by its number this would be a COMMIT that was refused for certain. */
function unknownBehind(what: string): Error {
  return new Error(`${name}: ${what}`);
}
