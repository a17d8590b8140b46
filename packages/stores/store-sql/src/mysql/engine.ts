import type { Database, SqlValue } from "@countersign/idempotency";
import { encodeText, type Row, type SeenRow, type Within } from "@countersign/idempotency/store";
import { KeyStatements } from "../keys/key-statements.ts";
import { withinCheckTime } from "../sql/check-deadline.ts";
import type { ChangeOfOne, Expired, Guarded, SqlEngine, StepIn } from "../sql/engine.ts";
import type { KeyParts } from "../sql/key-parts.ts";
import { fragment, raw, type Sql } from "../sql/sql.ts";
import { equal } from "../sql/statements.ts";
import { isTrue, singleRow } from "../sql/values.ts";
import { dialect } from "./dialect.ts";
import { duplicateKey, errnoOf, explained, faultOf, noSavepoint, outOfRange } from "./errors.ts";
import { type ResolvedMysqlOptions, factoryName } from "./options.ts";
import { keyParts } from "./key-parts.ts";
import { removeRows } from "./removal.ts";
import { checkServer, readServer, type Server, serverOf } from "./server-check.ts";
import {
  type Statement,
  clockOf,
  inlined,
  isAlone,
  isInTransaction,
  waitingFor,
  zeroIfAlone,
  zeroIfOpen,
} from "./statement-parts.ts";
import type { TableNames } from "./table-names.ts";

// Two claims that wait for a third one's rollback are a deadlock to InnoDB. Each time one succeeds.
const maxAttempts = 20;

// MariaDB's shortest. A heartbeat must not wait for a transaction that has its row: the next one comes soon.
const heartbeatLockTimeoutMs = 1_000;

// The second fails where none is open. Not the name of a transaction's own savepoint, which the first would take away; and one that a handler's
// connection takes, as the transaction may be of another object for the same library.
const askIsOpen = ["SAVEPOINT is_open_for_countersign", "RELEASE SAVEPOINT is_open_for_countersign"];

export interface StoreStep {
  readonly store: string;
  readonly step: string;
}

/** Runs the stores' statements by the user's library. Checks the server before the first one. */
export class Engine<Tx> implements SqlEngine<Tx, "async"> {
  readonly engine = "mariadb";
  readonly mode = "async";
  readonly name = "mysql";
  readonly factory = factoryName;
  readonly pruneBatchSize = 500;
  readonly dialect = dialect;
  readonly guardFails = true;
  readonly isAlone: Sql = raw(isAlone);
  readonly keys: KeyParts;
  readonly #options: ResolvedMysqlOptions<Tx>;
  readonly #sql: KeyStatements;
  #server: Server | undefined;
  #checking: Promise<Server> | undefined;

  constructor(options: ResolvedMysqlOptions<Tx>) {
    this.#options = options;
    this.keys = keyParts(options.names);
    this.#sql = new KeyStatements(this);
  }

  get database(): Database<Tx> {
    return this.#options.database;
  }

  get names(): TableNames {
    return this.#options.names;
  }

  get pruneIntervalMs(): number {
    return this.#options.pruneIntervalMs;
  }

  /** Microseconds since 1970. */
  now(): Sql {
    return raw(clockOf(this.#options)());
  }

  read(store: string, { text, values }: Sql): Promise<readonly Row[]> {
    return this.alone(store, text, values);
  }

  change(store: string, statement: Guarded): Promise<number> {
    const { text, values } = statement(raw(`1 + ${zeroIfAlone} = 1`));
    return this.changeAlone(store, `${this.#waiting}${text}`, values);
  }

  async changeOne(
    store: string,
    statement: Guarded,
    { fence, isHeartbeat }: ChangeOfOne,
  ): Promise<number | undefined> {
    const { lockTimeoutMs } = this.#options;
    const waitMs = isHeartbeat === true ? Math.min(lockTimeoutMs, heartbeatLockTimeoutMs) : lockTimeoutMs;
    const { text, values } = statement(raw(`1 + ${zeroIfAlone} = 1`));
    try {
      return (await this.changeAlone(store, `${waitingFor(waitMs)}${text}`, values)) > 0 ? fence : undefined;
    } catch (error) {
      if (errnoOf(error) === duplicateKey) return undefined;
      throw error;
    }
  }

  /** Under READ UNCOMMITTED the row may be rolled back, and its payment with it. */
  async confirmDone(store: string, key: string, seen: SeenRow): Promise<SeenRow | undefined | "changed"> {
    if ((await this.ready()).engine === "mariadb") return this.lookLocked(store, key);
    // MySQL, where no SELECT tells whether it reads what its own session has not committed yet. A changed version proves that the row has
    // committed: an open transaction would keep it locked.
    const isSeen = fragment`${equal(dialect.ids.key(key))} AND token = ${dialect.text(encodeText(seen.token))}`;
    const { text, values } =
      fragment`UPDATE ${raw(this.names.idempotency)} SET version = version + 1 WHERE state = 'done' AND ${isSeen}`;
    const changed = await this.changeAlone(store, text, values);
    return changed === 0 ? "changed" : { ...seen, version: seen.version + 1 };
  }

  /** Reads a key's row behind the end of each transaction that has it: what is found cannot be rolled back any more. */
  async lookLocked(store: string, key: string): Promise<SeenRow | undefined> {
    const { text, values } =
      fragment`SELECT ${this.isAlone} AS is_alone, ${this.#sql.columns(this.now())} FROM ${raw(this.names.idempotency)} AS kept
WHERE ${equal(dialect.ids.key(key), "kept.")} LOCK IN SHARE MODE`;
    const [row] = await this.alone(store, `${this.#waiting}${text}`, values);
    return row && this.#sql.rowOf(row);
  }

  queryIn(tx: Tx, store: string, { text, values }: Sql): Promise<readonly Row[]> {
    return this.query(tx, store, text, values);
  }

  /** Changes rows in a transaction that is not the stores' own. */
  async changeIn(tx: Tx, store: string, { text, values }: Sql): Promise<number> {
    try {
      return await this.#change(text, values, { tx });
    } catch (error) {
      throw explained(store, this.#options.names, error);
    }
  }

  changeWithin({ tx, store, step }: StepIn<Tx>, statement: Guarded): Promise<number> {
    const { text, values } = statement(raw(`1 + ${zeroIfOpen} = 1`));
    return this.changeOpen(tx, { store, step }, [text, values]);
  }

  unwritten(store: string): Error {
    return new Error(`${store}: the server did not write a row; look for triggers`);
  }

  removeBatch(store: string, expired: Expired): Promise<readonly Row[]> {
    const { database, names, pruneBatchSize: batchSize } = this;
    const removal = { database, names, batchSize, now: this.now(), bound: this.#waiting };
    return this.run(store, (tx) => removeRows(tx, expired, removal));
  }

  /** Checks server and tables once. After a failure the next call checks again. */
  async ready(): Promise<Server> {
    if (this.#server !== undefined) return this.#server;
    this.#checking ??= withinCheckTime(factoryName, this.#check());
    try {
      this.#server = await this.#checking;
      return this.#server;
    } finally {
      this.#checking = undefined;
    }
  }

  /** Runs one statement that commits by itself. Throws where its row says that it does not. */
  async alone(store: string, text: string, values: readonly SqlValue[]): Promise<readonly Row[]> {
    const rows = await this.#repeat(store, () => this.database.alone(text, values));
    if (rows.every((row) => row["is_alone"] === undefined || isTrue(row["is_alone"]))) return rows;
    throw notAlone(store);
  }

  /**
   * Runs one statement that changes rows and, by `zeroIfAlone`, commits by itself or fails. Resolves to how many rows it has changed. On MySQL
   * the library looks at the flags of the server's answer; where it cannot, the statement gets a transaction of its own.
   */
  async changeAlone(store: string, text: string, values: readonly SqlValue[]): Promise<number> {
    const server = await this.ready();
    const isTold = server.engine === "mariadb" || this.database.tellsOpen === true;
    try {
      return await this.#repeat(store, () =>
        isTold ? this.#change(text, values) : this.database.run((tx) => this.#change(text, values, { tx })),
      );
    } catch (error) {
      throw errnoOf(error) === outOfRange ? notAlone(store) : error;
    }
  }

  /** The same with `zeroIfOpen` in it. Throws where no transaction is open, and changes nothing. `step` is what was called. */
  async changeOpen(tx: Tx, { store, step }: StoreStep, [text, values]: Statement): Promise<number> {
    await this.assertOpen(tx, { store, step });
    let changed: number;
    try {
      changed = await this.changeIn(tx, store, { text, values });
    } catch (error) {
      throw errnoOf(error) === outOfRange ? notOpen({ store, step }) : error;
    }
    if (changed > 0) return changed;
    // It may have come to no row.
    const isOpen = await this.query(tx, store, `SELECT ${isInTransaction} AS is_open`, []);
    if (isTrue(singleRow(isOpen)["is_open"])) return changed;
    throw notOpen({ store, step });
  }

  /** On MySQL: throws unless a transaction is open. On MariaDB `isInTransaction` tells, in the statement that asks. */
  async assertOpen(tx: Tx, { store, step }: StoreStep): Promise<void> {
    const { engine } = this.#server ?? serverOf(singleRow(await this.query(tx, store, ...readServer)));
    if (engine === "mariadb") return;
    try {
      for (const text of askIsOpen) {
        // oxlint-disable-next-line no-await-in-loop -- one statement after the other
        await this.query(tx, store, text, []);
      }
    } catch (error) {
      throw errnoOf(error) === noSavepoint ? notOpen({ store, step }) : error;
    }
  }

  /** Runs steps of the stores' own in a transaction, again from its beginning when the server asks for that. */
  run<T>(store: string, work: (tx: Tx) => Promise<T>): Promise<T> {
    return this.#repeat(store, () => this.database.run(work));
  }

  /** Runs a statement in a transaction that is not the stores' own. */
  async query(tx: Tx, store: string, text: string, values: readonly SqlValue[]): Promise<readonly Row[]> {
    try {
      return await this.database.query(tx, text, values);
    } catch (error) {
      throw explained(store, this.#options.names, error);
    }
  }

  /** Whether {@link send} takes one message for several statements. */
  async sendsScripts(): Promise<boolean> {
    return this.database.script !== undefined && (await this.ready()).engine === "mariadb";
  }

  /** Runs statements in such a transaction, in one message where library and server can: none behind one that fails. */
  async send(tx: Tx, store: string, statements: readonly Statement[]): Promise<readonly Row[]> {
    const { database } = this;
    // An app's own transaction, which has no gate, takes none.
    const isScript = this.#server?.engine === "mariadb" && database.gateOf(tx) !== undefined;
    if (database.script === undefined || !isScript || statements.length === 1) {
      const rows: Row[] = [];
      for (const [text, values] of statements) {
        // oxlint-disable-next-line no-await-in-loop -- one statement after the other
        rows.push(...(await this.query(tx, store, text, values)));
      }
      return rows;
    }
    try {
      return await database.script(tx, statements.map(inlined).join(";\n"));
    } catch (error) {
      throw explained(store, this.#options.names, error);
    }
  }

  get #waiting(): string {
    return waitingFor(this.#options.lockTimeoutMs);
  }

  async #change(text: string, values: readonly SqlValue[], within?: Within<Tx>): Promise<number> {
    const { database } = this;
    if (database.change !== undefined) return database.change(text, values, within);
    throw new TypeError(`${factoryName}: ${database.library} tells no number of changed rows`);
  }

  async #repeat<T>(store: string, step: () => Promise<T>): Promise<T> {
    await this.ready();
    for (let attempt = 1; ; attempt++) {
      try {
        // oxlint-disable-next-line no-await-in-loop -- one attempt after the other
        return await step();
      } catch (error) {
        // Nothing of it happened.
        if (faultOf(error) === "conflict" && attempt < maxAttempts) continue;
        throw explained(store, this.#options.names, error);
      }
    }
  }

  async #check(): Promise<Server> {
    try {
      return await checkServer(this.#options);
    } catch (error) {
      throw explained(factoryName, this.#options.names, error);
    }
  }
}

function notAlone(store: string): Error {
  return new Error(
    `${store}: the pool gave a connection on which a transaction is open; COMMIT or ROLLBACK before releasing it`,
  );
}

export function notOpen({ store, step }: StoreStep): Error {
  return new Error(
    `${store}: ${step} needs what your library gives to a transaction's work, while it is open; nothing was written`,
  );
}
