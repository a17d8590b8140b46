import { withDeadline } from "@countersign/core";
import type { Database, SqlValue } from "@countersign/idempotency";
import type { Row, Within } from "@countersign/idempotency/store";
import { errnoOf, explained, faultOf, noSavepoint, outOfRange } from "./errors.ts";
import { type ResolvedMysqlOptions, factoryName } from "./options.ts";
import { checkServer, readServer, type Server, serverOf } from "./server-check.ts";
import { type Statement, inlined, isInTransaction } from "./statement-parts.ts";
import { isTrue, singleRow } from "./values.ts";

// Two claims that wait for a third one's rollback are a deadlock to InnoDB. Each time one succeeds.
const maxAttempts = 20;

/** For the questions that all steps wait for: a line that never answers must not stop them for ever. */
export const checkTimeoutMs = 30_000;

export function checkLate(): Error {
  return new Error(`${factoryName}: the server did not answer within ${checkTimeoutMs} ms`);
}

// The second fails where none is open. Not the name of a transaction's own savepoint, which the first would take away; and one that a handler's
// connection takes, as the transaction may be of another object for the same library.
const askIsOpen = ["SAVEPOINT is_open_for_countersign", "RELEASE SAVEPOINT is_open_for_countersign"];

export interface StoreStep {
  readonly store: string;
  readonly step: string;
}

/** Runs the stores' statements by the user's library. Checks the server before the first one. */
export class Engine<Tx> {
  readonly #options: ResolvedMysqlOptions<Tx>;
  #server: Server | undefined;
  #checking: Promise<Server> | undefined;

  constructor(options: ResolvedMysqlOptions<Tx>) {
    this.#options = options;
  }

  get database(): Database<Tx> {
    return this.#options.database;
  }

  /** Checks server and tables once. After a failure the next call checks again. */
  async ready(): Promise<Server> {
    if (this.#server !== undefined) return this.#server;
    this.#checking ??= withDeadline(this.#check(), checkTimeoutMs, checkLate);
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
  async change(store: string, text: string, values: readonly SqlValue[]): Promise<number> {
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

  /** Runs one that changes rows in a transaction that is not the stores' own. */
  async changeIn(tx: Tx, store: string, text: string, values: readonly SqlValue[]): Promise<number> {
    try {
      return await this.#change(text, values, { tx });
    } catch (error) {
      throw explained(store, this.#options.names, error);
    }
  }

  /** The same with `zeroIfOpen` in it. Throws where no transaction is open, and changes nothing. `step` is what was called. */
  async changeOpen(tx: Tx, { store, step }: StoreStep, [text, values]: Statement): Promise<number> {
    await this.assertOpen(tx, { store, step });
    let changed: number;
    try {
      changed = await this.changeIn(tx, store, text, values);
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
