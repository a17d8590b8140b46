import { withDeadline } from "@countersign/core";
import type { Database, SqlValue } from "@countersign/idempotency";
import type { Row, Within } from "@countersign/idempotency/store";
import { errnoOf, explained, faultOf, outOfRange } from "./errors.ts";
import { type ResolvedMysqlOptions, factoryName } from "./options.ts";
import { checkServer } from "./server-check.ts";
import { type Statement, inlined } from "./statement-parts.ts";
import { isTrue } from "./values.ts";

// Two claims that wait for a third one's rollback are a deadlock to InnoDB. Each time one succeeds.
const maxAttempts = 20;

/** For the questions that all steps wait for: a line that never answers must not stop them for ever. */
export const checkTimeoutMs = 30_000;

export function checkLate(): Error {
  return new Error(`${factoryName}: the server did not answer within ${checkTimeoutMs} ms`);
}

/** Runs the stores' statements by the user's library. Checks the server before the first one. */
export class Engine<Tx> {
  readonly #options: ResolvedMysqlOptions<Tx>;
  #isReady = false;
  #checking: Promise<void> | undefined;

  constructor(options: ResolvedMysqlOptions<Tx>) {
    this.#options = options;
  }

  get database(): Database<Tx> {
    return this.#options.database;
  }

  /** Checks server and tables once. After a failure the next call checks again. */
  async ready(): Promise<void> {
    if (this.#isReady) return;
    this.#checking ??= withDeadline(this.#check(), checkTimeoutMs, checkLate);
    try {
      await this.#checking;
      this.#isReady = true;
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

  /** Runs one statement that changes rows and, by `zeroIfAlone`, commits by itself or fails. Resolves to how many rows it has changed. */
  async change(store: string, text: string, values: readonly SqlValue[]): Promise<number> {
    try {
      return await this.#repeat(store, () => this.#change(text, values));
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

  /** Runs statements in such a transaction, in one message where the library can: none behind one that fails. */
  async send(tx: Tx, store: string, statements: readonly Statement[]): Promise<readonly Row[]> {
    const { database } = this;
    if (database.script === undefined || statements.length === 1) {
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

  /** The same in one message by any library: no statement of somebody else comes between them. */
  async sendTogether(tx: Tx, store: string, statements: readonly Statement[]): Promise<readonly Row[]> {
    if (this.database.script !== undefined) return this.send(tx, store, statements);
    return this.query(tx, store, `BEGIN NOT ATOMIC\n${statements.map(inlined).join(";\n")};\nEND`, []);
  }

  async #change(text: string, values: readonly SqlValue[], within?: Within<Tx>): Promise<number> {
    const { database } = this;
    if (database.change !== undefined) return database.change(text, values, within);
    throw new TypeError(`${factoryName}: ${database.library} tells no number of changed rows`);
  }

  async #repeat<T>(store: string, step: () => Promise<T>): Promise<T> {
    if (!this.#isReady) await this.ready();
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

  async #check(): Promise<void> {
    try {
      await checkServer(this.#options);
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
