import { randomBytes } from "node:crypto";
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
  type Added,
  type NewRow,
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
import { errnoOf, faultOf, isInterrupted, noSavepoint, readOnlyTransaction, wrongValue } from "./errors.ts";
import { KeyStatements } from "./key-statements.ts";
import { rowOf } from "./key-table.ts";
import { isNewNonce, nonceStatement, ownNonce } from "./nonce-store.ts";
import type { ResolvedMysqlOptions } from "./options.ts";
import { MysqlRowsWithin } from "./rows-within.ts";
import type { Server } from "./server-check.ts";
import {
  endSession,
  giveSessionBack,
  giveSessionBackIf,
  rowsLeft,
  startAgain,
  takeSession,
  warnings,
} from "./session.ts";
import {
  type Statement,
  clockOf,
  inlined,
  releaseSavepoint,
  setSavepoint,
  zeroOnSession,
} from "./statement-parts.ts";
import { assertTransactions } from "./transaction-proof.ts";
import { integerOf, isTrue } from "./values.ts";

const name = "mysql transaction store";

const rollbackTimeoutMs = 5_000;

const withoutTransactions =
  "a table that it has written has no transactions; make the handler's tables with ENGINE = InnoDB";

const rollBack: Statement = ["ROLLBACK", []];
const commit: Statement = ["COMMIT", []];
const countChanged: Statement = ["SELECT ROW_COUNT() AS changed", []];

// Of keys that others want too: two claims that wait for a third one's rollback are a deadlock to InnoDB.
const maxHoldAttempts = 20;

/** A variable of the session, by which the next statements of a script are asked for. */
const isOwnNonce = "@countersign_own_nonce";

interface OpenTransaction {
  readonly server: Server;
  /** By these bytes the statements of this transaction find out whether they are on its session. */
  readonly id: Buffer;
  /** Whether its session has our settings. */
  isTaken: boolean;
  /**
   * Whether our savepoint is set, which no COMMIT or ROLLBACK leaves, `AND CHAIN` neither. It takes part in scripts, where it costs no
   * message; without them a transaction is known by its keys, and one without keys by this.
   */
  isMarked: boolean;
  /** Those that the transaction has to have made done when it commits. */
  kept: readonly TransactionKey[];
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
    this.#rows = new MysqlRowsWithin(name, engine, this.#sql, (tx) => this.#sessionOf(tx).id);
    this.retentionMs = options.retentionMs;
  }

  async run<T>(work: (tx: Tx) => T | Promise<T>): Promise<T> {
    const server = await this.#server.ready();
    await this.#prove(server);
    let isCommitted = false;
    try {
      return await this.#server.database.run(async (tx) => {
        const session: OpenTransaction = {
          server,
          id: randomBytes(16),
          isTaken: false,
          isMarked: false,
          kept: [],
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
    const session = this.#sessionOf(tx);
    const { nonce, leaseMs, waitMs, idleTimeoutMs } = claim;
    const ordered = [...claim.keys];
    ordered.sort(byKey);
    const news = ordered.map((key) => ({ key: key.key, row: firstBegin(key, leaseMs) }));
    const { server, id } = session;
    const take = session.isTaken ? [] : [takeSession(server, { waitMs, idleTimeoutMs, run: id })];
    // Before it is sent: it may take effect although its reply is lost.
    session.isTaken = true;
    const added = (await this.#server.sendsScripts())
      ? await this.#addInScript(tx, take, nonce, news)
      : await this.#addInTurn(tx, take, nonce, news);
    if (added === undefined) return { nonce: "seen", keys: [] };
    if (claim.keys.length === 0 && !session.isMarked) {
      await this.#send(tx, [setSavepoint]);
      session.isMarked = true;
    }
    const keys = await runSteps(beginKeys(this.#rows, tx, claim, added));
    session.begun = claim.keys.filter((_key, index) => keys[index]?.status === "begun");
    session.run = session.begun;
    return { nonce: "fresh", keys };
  }

  async keep(tx: Tx, keys: readonly TransactionKey[], _more: boolean): Promise<void> {
    await this.#changeOwn(tx, keys, (id) => this.#sql.doneAll(keys, id));
    const session = this.#sessionOf(tx);
    session.kept = [...session.kept, ...keys];
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
    await this.#changeOwn(tx, keys, (id) => this.#sql.touchAll(keys, id));
  }

  async free(tx: Tx, keys: readonly TransactionKey[]): Promise<void> {
    const freed = await this.#free(tx, keys);
    // Else they would commit as running, and nobody runs them. A trigger can take the change back.
    if (!keys.every(({ key }) => freed.get(key)?.state === "free")) throw this.#notFreed();
    const session = this.#open.get(tx);
    if (session === undefined) return;
    session.begun = without(session.begun, keys);
    session.kept = without(session.kept, keys);
    session.run = without(session.run, keys);
  }

  async hold(keys: readonly TransactionKey[], reason: string, tx?: Tx): Promise<ReadonlySet<string>> {
    if (tx !== undefined) {
      const session = this.#sessionOf(tx);
      session.kept = without(session.kept, keys);
      return runSteps(holdOwn(this.#rows, tx, keys, { reason, isOpen: true }));
    }
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

  #sessionOf(tx: Tx): OpenTransaction {
    const session = this.#open.get(tx);
    if (session !== undefined) return session;
    throw new TypeError(`${name}: begin() needs what run() has given`);
  }

  /** Claims the nonce, and adds the keys if it was fresh, in one message. Resolves to undefined if it was seen. */
  async #addInScript(
    tx: Tx,
    take: readonly Statement[],
    nonce: TransactionClaim["nonce"],
    news: readonly NewRow[],
  ): Promise<Added | undefined> {
    const session = this.#sessionOf(tx);
    const { id } = session;
    const then = [...this.#rows.adding(news, id), setSavepoint];
    if (nonce === undefined) {
      const rows = await this.#send(tx, [...take, ...then]);
      session.isMarked = true;
      return this.#rows.added(news, rows);
    }
    const moment = { nonces: this.#options.names.nonces, now: this.#now() };
    const [isOwn, values] = ownNonce(moment, nonce);
    const claim: readonly Statement[] = [
      nonceStatement(moment, nonce, [zeroOnSession, [id]]),
      [`SET ${isOwnNonce} = (${isOwn})`, values],
      [`SELECT ${isOwnNonce} AS is_own`, []],
    ];
    const all = `IF ${isOwnNonce} THEN\n${then.map(inlined).join(";\n")};\nEND IF`;
    const [claimed, ...rows] = await this.#send(tx, [...take, ...claim, [all, []]]);
    if (claimed === undefined) throw new Error(`${name}: the server answered without the nonce`);
    if (!isTrue(claimed["is_own"])) return undefined;
    session.isMarked = true;
    return this.#rows.added(news, rows);
  }

  /** The same, one statement after the other. */
  async #addInTurn(
    tx: Tx,
    take: readonly Statement[],
    nonce: TransactionClaim["nonce"],
    news: readonly NewRow[],
  ): Promise<Added | undefined> {
    const { id } = this.#sessionOf(tx);
    await this.#send(tx, take);
    if (nonce !== undefined) {
      const moment = { nonces: this.#options.names.nonces, now: this.#now() };
      const claim = nonceStatement(moment, nonce, [zeroOnSession, [id]]);
      if (!isNewNonce(await this.#change(tx, claim))) {
        const [row] = await this.#send(tx, [ownNonce(moment, nonce)]);
        if (row === undefined || !isTrue(row["is_own"])) return undefined;
      }
    }
    return this.#rows.add(tx, news);
  }

  /** Changes rows, if there is a statement, behind the proof that the savepoint's transaction is still there. Resolves to how many. */
  async #changeMarked(
    tx: Tx,
    { isMarked }: OpenTransaction,
    statements: readonly Statement[],
  ): Promise<number> {
    if (isMarked && (await this.#server.sendsScripts())) {
      const counted = statements.flatMap((statement) => [statement, countChanged]);
      const rows = await this.#send(tx, [releaseSavepoint, ...counted, setSavepoint]);
      return rows.reduce((changed, row) => changed + integerOf(row["changed"]), 0);
    }
    if (isMarked) await this.#send(tx, [releaseSavepoint, setSavepoint]);
    const [statement] = statements;
    return statement === undefined ? 0 : this.#change(tx, statement);
  }

  async #change(tx: Tx, [text, values]: Statement): Promise<number> {
    return this.#server.changeIn(tx, name, text, values);
  }

  /**
   * Commits by giving the session back, if it has the keys as done that were kept: not with a trigger that has taken the change back, nor
   * behind a late statement of the handler that has met a deadlock, which rolls all of it back. The library's own COMMIT finds nothing left
   * to do.
   */
  async #commit(tx: Tx, { server, isMarked, kept }: OpenTransaction): Promise<void> {
    const release = isMarked ? [releaseSavepoint] : [];
    const back =
      kept.length === 0 ? giveSessionBack(server) : giveSessionBackIf(server, this.#sql.areDone(kept));
    try {
      await this.#send(tx, [...release, back]);
    } catch (error) {
      const errno = errnoOf(error);
      if (errno === wrongValue || errno === noSavepoint) {
        throw unknownBehind(
          "the transaction ended between the last statement and COMMIT; await every statement of the handler, and look for triggers that change a key",
        );
      }
      if (isInterrupted(errno)) {
        throw unknownBehind(
          "COMMIT was interrupted, by KILL QUERY or a time limit of the server, and may have taken effect",
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
    const { run, server } = session;
    const back = giveSessionBack(server);
    if (run.length === 0) {
      // Together: a first message that has failed takes nothing but a ROLLBACK after it.
      await this.#send(tx, [rollBack, back]);
      return;
    }
    const rows = await this.#send(tx, [rollBack, warnings]);
    session.hasLeftRows = rows.some((row) => Number(row["Code"]) === rowsLeft);
    if (session.hasLeftRows) {
      await this.#send(tx, [startAgain]);
      await runSteps(holdBroken(this.#rows, tx, run));
      await this.#send(tx, [commit]);
    }
    await this.#send(tx, [back]);
  }

  async #send(tx: Tx, statements: readonly Statement[]): Promise<readonly Row[]> {
    return this.#server.send(tx, name, statements);
  }

  /** Changes all of the keys, which their transaction has begun and left running, or finds out that it has ended. */
  async #changeOwn(
    tx: Tx,
    keys: readonly TransactionKey[],
    statement: (id: Buffer) => Statement,
  ): Promise<void> {
    const session = this.#sessionOf(tx);
    const unseen = without(session.begun, keys);
    let failure: unknown;
    try {
      const statements = keys.length === 0 ? [] : [statement(session.id)];
      if ((await this.#changeMarked(tx, session, statements)) === keys.length) {
        session.begun = unseen;
        return;
      }
    } catch (error) {
      const errno = errnoOf(error);
      if (errno !== readOnlyTransaction && errno !== noSavepoint) throw error;
      failure = error;
    }
    throw transactionBroken(
      "it ended before its handler did: the handler swallowed a deadlock, changed a table's definition (which commits), or sent COMMIT or ROLLBACK",
      await this.#hold(tx, keys, unseen, failure),
    );
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
    await this.#send(tx, [startAgain]);
    await runSteps(holdBroken(this.#rows, tx, keys));
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
  async #prove(server: Server): Promise<void> {
    const { names } = this.#options;
    const proof = () => assertTransactions(this.#server.database, names, server);
    this.#proof ??= withDeadline(proof(), checkTimeoutMs, checkLate);
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
