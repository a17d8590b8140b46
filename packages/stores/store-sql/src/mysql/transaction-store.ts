import { randomBytes } from "node:crypto";
import { withDeadline, type NonceClaim } from "@countersign/core";
import type {
  TransactionBegun,
  TransactionClaim,
  TransactionKey,
  TransactionStore,
  TransactionTurn,
} from "@countersign/idempotency";
import {
  type Added,
  type NewRow,
  type Row,
  beginKeys,
  decideOwn,
  holdBroken,
  runSteps,
  transactionBroken,
  transactionNotRolledBack,
} from "@countersign/idempotency/store";
import { isNewNonce, isOwnNonce, nonceStatement, ownNonce } from "../keys/nonce-table.ts";
import { fragment, raw, type Sql } from "../sql/sql.ts";
import { assertLeft, errorOfLeft, firstRows, leaveBroken, without } from "../transactions/key-bookkeeping.ts";
import { ServerTransactions, type OpenRun } from "../transactions/server-transactions.ts";
import { integerOf, isTrue } from "../sql/values.ts";
import type { Engine } from "./engine.ts";
import { errnoOf, faultOf, isInterrupted, noSavepoint, readOnlyTransaction, wrongValue } from "./errors.ts";
import type { ResolvedMysqlOptions } from "./options.ts";
import { OwnKeyStatements } from "./own-keys.ts";
import { MysqlRowsWithin, onSession, statementOf } from "./rows-within.ts";
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
import { type Statement, inlined, releaseSavepoint, setSavepoint } from "./statement-parts.ts";
import { assertTransactions } from "./transaction-proof.ts";

const name = "mysql transaction store";

const rollbackTimeoutMs = 5_000;

const withoutTransactions =
  "a table that it has written has no transactions; make the handler's tables with ENGINE = InnoDB";

const rollBack: Statement = ["ROLLBACK", []];
const commit: Statement = ["COMMIT", []];
const countChanged: Statement = ["SELECT ROW_COUNT() AS changed", []];

/** A variable of the session, by which the next statements of a script are asked for. */
const ownNonceVariable = "@countersign_own_nonce";

interface OpenTransaction extends OpenRun {
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
  /** Those whose handlers may have written something. */
  run: readonly TransactionKey[];
  /** Whether ROLLBACK has left what the handler wrote in a table without transactions. */
  hasLeftRows: boolean;
}

export class MysqlTransactions<Tx>
  extends ServerTransactions<Tx, OpenTransaction>
  implements TransactionStore<Tx, "async">
{
  readonly #server: Engine<Tx>;
  readonly #sql: OwnKeyStatements;
  readonly #rows: MysqlRowsWithin<Tx>;

  constructor(server: Engine<Tx>, options: ResolvedMysqlOptions<Tx>) {
    const { engine, factory, database, names } = server;
    const rows = new MysqlRowsWithin(name, server, (tx) => this.openOf(tx).id);
    const { retentionMs, maxTransactions } = options;
    super(
      { engine, factory, database, retentionMs, maxTransactions, faultOf },
      { name, rows, place: names.place },
    );
    this.#server = server;
    this.#sql = new OwnKeyStatements(options);
    this.#rows = rows;
  }

  async run<T>(work: (tx: Tx) => T | Promise<T>, turn?: TransactionTurn): Promise<T> {
    const server = await this.#server.ready();
    await this.proven();
    let isCommitted = false;
    try {
      return await this.runInPlace(async (tx) => {
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
        this.open.set(tx, session);
        try {
          const result = await work(tx);
          await this.database.flush?.(tx);
          if (session.isTaken) {
            await this.#commit(tx, session);
            isCommitted = true;
          }
          return result;
        } catch (error) {
          if (session.isTaken) await this.#rollBack(tx, session);
          throw session.hasLeftRows ? transactionNotRolledBack(withoutTransactions, error) : error;
        } finally {
          this.open.delete(tx);
        }
      }, turn);
    } catch (error) {
      if (!isCommitted) throw error;
      throw unknownBehind("the library failed behind COMMIT, as by a hook of the app's");
    }
  }

  async begin(tx: Tx, claim: TransactionClaim): Promise<TransactionBegun> {
    this.gate.assertTransaction(claim);
    const session = this.openOf(tx);
    const { nonce, leaseMs, waitMs, idleTimeoutMs } = claim;
    const news = firstRows(claim.keys, leaseMs);
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
    const session = this.openOf(tx);
    session.kept = [...session.kept, ...keys];
  }

  async assertOpen(tx: Tx, keys: readonly TransactionKey[]): Promise<void> {
    await this.#changeOwn(tx, keys, (id) => this.#sql.touchAll(keys, id));
  }

  override async hold(
    keys: readonly TransactionKey[],
    reason: string,
    tx?: Tx,
  ): Promise<ReadonlySet<string>> {
    if (tx !== undefined) {
      const session = this.openOf(tx);
      session.kept = without(session.kept, keys);
    }
    return super.hold(keys, reason, tx);
  }

  protected override async holdAlone(
    keys: readonly TransactionKey[],
    reason: string,
  ): Promise<ReadonlySet<string>> {
    const own = new Set<string>();
    for (const { key, token } of keys) {
      // oxlint-disable-next-line no-await-in-loop -- one key after the other
      if (await this.#holdOwn(key, token, reason)) own.add(key);
    }
    return own;
  }

  protected override forget(session: OpenTransaction, keys: readonly TransactionKey[]): void {
    super.forget(session, keys);
    session.kept = without(session.kept, keys);
    session.run = without(session.run, keys);
  }

  /** Looks behind the end of each transaction that has the row: also of one whose connection was lost, and which the server has not ended yet. */
  async #holdOwn(key: string, token: string, reason: string): Promise<boolean> {
    const seen = await this.#server.lookLocked(name, key);
    const decided = decideOwn(seen, token, reason, false);
    if (decided === undefined || seen === undefined) return false;
    const { write: change } = decided;
    const { fence } = seen;
    if (change !== undefined) {
      const write = (guard: Sql): Sql => this.#rows.sql.write(key, { change, seen, fence }, guard);
      await this.#server.changeOne(name, write, { fence });
    }
    return true;
  }

  /** Claims the nonce, and adds the keys if it was fresh, in one message. Resolves to undefined if it was seen. */
  async #addInScript(
    tx: Tx,
    take: readonly Statement[],
    nonce: TransactionClaim["nonce"],
    news: readonly NewRow[],
  ): Promise<Added | undefined> {
    const session = this.openOf(tx);
    const { id } = session;
    const then = [...this.#rows.adding(news, id), setSavepoint];
    if (nonce === undefined) {
      const rows = await this.#send(tx, [...take, ...then]);
      session.isMarked = true;
      return this.#rows.added(news, rows);
    }
    const isOwn = ownNonce(this.#server, nonce);
    const claim: readonly Statement[] = [
      this.#claim(nonce, id),
      statementOf(fragment`SET ${raw(ownNonceVariable)} = (${isOwn})`),
      [`SELECT ${ownNonceVariable} AS is_own`, []],
    ];
    const all = `IF ${ownNonceVariable} THEN\n${then.map(inlined).join(";\n")};\nEND IF`;
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
    const { id } = this.openOf(tx);
    await this.#send(tx, take);
    if (nonce !== undefined) {
      if (!isNewNonce(await this.#change(tx, this.#claim(nonce, id)))) {
        const found = await this.#send(tx, [statementOf(ownNonce(this.#server, nonce))]);
        if (!isOwnNonce(found)) return undefined;
      }
    }
    return this.#rows.add(tx, news);
  }

  #claim(nonce: NonceClaim, id: Buffer): Statement {
    return statementOf(nonceStatement(this.#server, nonce, this.#server.now(), onSession(id)));
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
    return this.#server.changeIn(tx, name, { text, values });
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
    const session = this.openOf(tx);
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
      await this.#holdBroken(tx, keys, unseen, failure),
    );
  }

  /**
   * What ended the transaction may have committed a part of the payment, as DDL does, with keys that no handler has seen; or the handler may
   * have paid after a rollback: an operator has to look. Another connection may never come, in a full pool. Returns the error to show.
   */
  async #holdBroken(
    tx: Tx,
    keys: readonly TransactionKey[],
    unseen: readonly TransactionKey[],
    error: unknown,
  ): Promise<unknown> {
    return errorOfLeft(error, () => this.#leave(tx, keys, unseen), faultOf);
  }

  async #leave(tx: Tx, keys: readonly TransactionKey[], unseen: readonly TransactionKey[]): Promise<void> {
    await this.#send(tx, [rollBack]);
    await this.#send(tx, [startAgain]);
    const rows = await runSteps(leaveBroken(this.keys, tx, { keys, others: unseen }));
    await this.#send(tx, [commit]);
    assertLeft(this.keys, rows, unseen);
  }

  protected override async prove(): Promise<void> {
    await assertTransactions(this.database, this.#server.names, await this.#server.ready());
  }
}

/** Without the server's error as its cause: by its number this would be a COMMIT that was refused for certain. */
function unknownBehind(what: string): Error {
  return new Error(`${name}: ${what}`);
}
