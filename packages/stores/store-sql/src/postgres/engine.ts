import { createHash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Database, SqlValue } from "@countersign/idempotency";
import type { Row } from "@countersign/idempotency/store";
import { withinCheckTime } from "../sql/check-deadline.ts";
import type { ChangeOfOne, Expired, Guarded, SqlEngine, StepIn } from "../sql/engine.ts";
import type { KeyParts } from "../sql/key-parts.ts";
import { bound, fragment, raw, type Sql } from "../sql/sql.ts";
import { integerOf, singleRow } from "../sql/values.ts";
import { dialect, numbered } from "./dialect.ts";
import { assertEngine, readEngine } from "./engine-check.ts";
import { explained, inTransaction } from "./errors.ts";
import { faultOf } from "./faults.ts";
import { runAlone } from "./lone-statement.ts";
import type { ResolvedPostgresOptions } from "./options.ts";
import { factoryName } from "./options.ts";
import { rowsOf } from "./queryable.ts";
import { keyParts } from "./key-parts.ts";
import { removal } from "./removal.ts";
import { assertServer, assertVersion, readServer, readStandbys, readVersion } from "./server-check.ts";
import { isAlone, isInTransaction, isReadyToInsert } from "./statement-parts.ts";
import { checkedTables } from "./primary-keys.ts";
import type { TableNames } from "./table-names.ts";

// Where the pool's default isolation is SERIALIZABLE, claims of new keys conflict in one page of an index. Each time one succeeds.
const maxAttempts = 20;
const longestPauseMs = 100;

// A heartbeat must not wait for a transaction that has its row. It fails without harm: the next one comes soon.
const heartbeatLockTimeoutMs = 100;

/** How often a process asks whether the server has synchronous standbys. */
const standbysEveryMs = 60_000;

/** Runs statements, each in a transaction of its own. Checks the server before the first one. */
export class Engine<Tx = never> implements SqlEngine<Tx, "async"> {
  readonly engine = "postgresql";
  readonly mode = "async";
  readonly name = "postgres";
  readonly factory = factoryName;
  readonly pruneBatchSize = 500;
  readonly dialect = dialect;
  readonly guardFails = false;
  readonly isAlone: Sql = raw(isAlone);
  readonly keys: KeyParts;
  /** The user's own library, in whose transactions the stores write. Undefined with the option `pool`. */
  readonly database: Database<Tx> | undefined;
  readonly #options: ResolvedPostgresOptions;
  #isReady = false;
  #isSynchronous = false;
  #standbysReadMs = 0;
  #checking: Promise<void> | undefined;
  /** With the option `prepare`: a name for each text, of which the stores have a fixed number. */
  readonly #names = new Map<string, string>();

  constructor(options: ResolvedPostgresOptions, database?: Database<Tx>) {
    this.#options = options;
    this.database = database;
    this.keys = keyParts(options.names);
  }

  get names(): TableNames {
    return this.#options.names;
  }

  get pruneIntervalMs(): number {
    return this.#options.pruneIntervalMs;
  }

  now(): Sql {
    const { now } = this.#options;
    return now === undefined ? raw("clock_timestamp()") : fragment`${bound(now())}::timestamptz`;
  }

  async read(store: string, statement: Sql): Promise<readonly Row[]> {
    const rows = await this.run(store, numbered(statement), [...statement.values]);
    // What was read may never be committed.
    if (rows.some((row) => row["is_alone"] !== undefined && row["is_alone"] !== true))
      throw this.unwritten(store);
    return rows;
  }

  async change(store: string, statement: Guarded): Promise<number> {
    const writing = fragment`${statement(raw(isReadyToInsert(this.#options.lockTimeoutMs)))} RETURNING 1 AS changed`;
    return (await this.run(store, numbered(writing), [...writing.values])).length;
  }

  async changeOne(
    store: string,
    statement: Guarded,
    { isHeartbeat }: ChangeOfOne,
  ): Promise<number | undefined> {
    const { lockTimeoutMs } = this.#options;
    const waitMs = isHeartbeat === true ? Math.min(lockTimeoutMs, heartbeatLockTimeoutMs) : lockTimeoutMs;
    const writing = fragment`${statement(raw(isReadyToInsert(waitMs)))} RETURNING fence`;
    const [written] = await this.run(store, numbered(writing), [...writing.values]);
    return written && integerOf(written["fence"]);
  }

  queryIn(tx: Tx, store: string, statement: Sql): Promise<readonly Row[]> {
    return this.query(tx, store, numbered(statement), statement.values);
  }

  async changeIn(tx: Tx, store: string, statement: Sql): Promise<number> {
    return (await this.queryIn(tx, store, fragment`${statement} RETURNING 1 AS changed`)).length;
  }

  async changeWithin({ tx, store, step }: StepIn<Tx>, statement: Guarded): Promise<number> {
    const writing = fragment`${statement(raw(isInTransaction))} RETURNING 1 AS changed`;
    const changed = (await this.query(tx, store, numbered(writing), writing.values)).length;
    if (changed === 0) throw new Error(`${store}: ${step} needs a transaction that has written`);
    return changed;
  }

  /** Nothing is written in a transaction that goes on. */
  unwritten(store: string): Error {
    return new Error(`${store}: ${inTransaction}`);
  }

  removeBatch(store: string, expired: Expired): Promise<readonly Row[]> {
    const removing = removal(expired, this.now(), this.pruneBatchSize);
    return this.run(store, numbered(removing), [...removing.values]);
  }

  /** Whether commits wait for standbys, by the server's settings of a minute ago or later. */
  get isSynchronous(): boolean {
    return this.#isSynchronous;
  }

  /** Reads {@link isSynchronous} again where it is too old. Takes a connection for it. */
  async refresh(): Promise<void> {
    if (performance.now() - this.#standbysReadMs < standbysEveryMs) return;
    // The steps that come meanwhile go by what is known.
    this.#standbysReadMs = performance.now();
    try {
      const statement = { text: readStandbys, values: [], name: undefined };
      this.#noteStandbys(singleRow(rowsOf(await runAlone(this.#options.pool, statement, false))));
    } catch (error) {
      this.#standbysReadMs -= standbysEveryMs;
      throw error;
    }
  }

  /** Checks server and tables once. After a failure the next call checks again. */
  async ready(): Promise<void> {
    if (this.#isReady) return;
    this.#checking ??= withinCheckTime(factoryName, this.#check());
    try {
      await this.#checking;
      this.#isReady = true;
    } finally {
      this.#checking = undefined;
    }
  }

  async run(store: string, text: string, values: unknown[]): Promise<readonly Row[]> {
    if (!this.#isReady) await this.ready();
    await this.refresh();
    for (let attempt = 1; ; attempt++) {
      try {
        // oxlint-disable-next-line no-await-in-loop -- one attempt after the other
        return await this.#runOnce(text, values);
      } catch (error) {
        // A deadlock, or a conflict where the pool's default isolation is stricter than READ COMMITTED. Nothing of the statement happened.
        if (faultOf(error) === "conflict" && attempt < maxAttempts) {
          // oxlint-disable-next-line no-await-in-loop -- as above
          await sleep(Math.random() * Math.min(2 ** attempt, longestPauseMs));
          continue;
        }
        throw explained(store, this.#options.names, error);
      }
    }
  }

  /** Runs a statement in the caller's transaction, which only the caller can repeat. */
  async query(tx: Tx, store: string, text: string, values: readonly SqlValue[]): Promise<readonly Row[]> {
    if (this.database === undefined) throw new TypeError(`${store}: there is no transaction by a pool alone`);
    try {
      return await this.database.query(tx, text, values);
    } catch (error) {
      throw explained(store, this.#options.names, error);
    }
  }

  async #runOnce(text: string, values: unknown[]): Promise<readonly Row[]> {
    const { pool, prepare } = this.#options;
    const statement = { text, values, name: prepare ? this.#nameOf(text) : undefined };
    return rowsOf(await runAlone(pool, statement, this.#isSynchronous));
  }

  #noteStandbys(row: Row): void {
    this.#standbysReadMs = performance.now();
    this.#isSynchronous = row["is_synchronous"] === true;
  }

  // Of the text, so that two processes behind one pooler mean the same by it.
  #nameOf(text: string): string {
    let name = this.#names.get(text);
    if (name === undefined) {
      name = `countersign_${createHash("sha256").update(text).digest("hex").slice(0, 32)}`;
      this.#names.set(text, name);
    }
    return name;
  }

  async #check(): Promise<void> {
    const { names } = this.#options;
    try {
      assertEngine(factoryName, singleRow(await this.#runOnce(readEngine, [])));
      const read = singleRow(await this.#runOnce(readServer, checkedTables(names)));
      assertServer(read, this.#options);
      const [version] = await this.#runOnce(readVersion(this.#options), []);
      assertVersion(version, this.#options);
      this.#noteStandbys(read);
    } catch (error) {
      throw explained(factoryName, names, error);
    }
  }
}
