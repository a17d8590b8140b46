import type { Database } from "@countersign/idempotency";
import { answerOf, type Row, type Steps } from "@countersign/idempotency/store";
import type { WorkStore } from "@countersign/idempotency/work";
import { composed, type Chain } from "../work/chain.ts";
import type { TaskDialect } from "../work/dialect.ts";
import { PrunedTable } from "../sql/pruned-table.ts";
import { bound, raw, fragment, type Sql } from "../sql/sql.ts";
import type { Moment, StepWithin, TaskEngine } from "../work/task-engine.ts";
import { TaskStore } from "../work/tasks.ts";
import { numbered } from "./dialect.ts";
import { isDurable, isTold } from "./durability.ts";
import { Engine } from "./engine.ts";
import { divisionByZero, explained, inTransaction, sqlStateOf } from "./errors.ts";
import { type PostgresStoresOptions, type ResolvedPostgresOptions, resolveOptions } from "./options.ts";
import { isAlone, microseconds } from "./statement-parts.ts";
import type { TableNames } from "./table-names.ts";
import { taskDialect } from "./task-dialect.ts";

const name = "postgres work store";

type OperatorSteps = "engine" | "summaries" | "read" | "list" | "retry" | "discard" | "pause" | "resume";

/** The table of work as operators use it, without the library that tasks are added by. */
export interface PostgresWork extends Pick<WorkStore<never, "async">, OperatorSteps | "prune"> {
  /** Ends the pruning timer; the pool stays open. A later call throws. */
  close(): void;
}

/** Opens the table of work for operators, such as a command line, by a pool or client alone. Throws an OptionError on a wrong option. */
export function createPostgresWork(options: PostgresStoresOptions): PostgresWork {
  // Its statements are not the same each time.
  const resolved = { ...resolveOptions(options, "createPostgresWork"), prepare: false };
  return new TaskStore<never, "async">(new PostgresTasks(new Engine(resolved), resolved, undefined));
}

/** The table of work beside the transactions of the user's own library. */
export function postgresWorkStore<Tx>(
  engine: Engine<Tx>,
  options: ResolvedPostgresOptions,
  database: Database<Tx>,
): TaskStore<Tx, "async"> {
  return new TaskStore(new PostgresTasks(engine, options, database));
}

/** Fails where the statement does not commit by itself. A condition would not do: what finds nothing is an answer. */
const failsUnlessAlone = `1 = 1 / CASE WHEN ${isAlone} THEN 1 ELSE 0 END`;

/** By the server's clock: microseconds since 1970, the same throughout a statement, so that an index finds what is due. */
const serverClock = raw(microseconds("statement_timestamp()"));

const bySettings: Moment = { now: raw("settings.now_us"), guard: raw("(SELECT is_ready FROM settings)") };

/** Runs each step as one statement. */
class PostgresTasks<Tx> extends PrunedTable<"async"> implements TaskEngine<Tx, "async"> {
  readonly #server: Engine<Tx>;
  readonly #options: ResolvedPostgresOptions;
  readonly dialect: TaskDialect = taskDialect;
  readonly names: TableNames;
  readonly taskRetentionMs: number;
  readonly #database: Database<Tx> | undefined;

  constructor(engine: Engine<Tx>, options: ResolvedPostgresOptions, database: Database<Tx> | undefined) {
    super(engine, name, {
      table: engine.names.tasks,
      key: ["digest"],
      until: "until_us",
      // Each by the retention of the process that ended it: a command knows none.
      isExpired: (now) => fragment`until_us <= ${engine.dialect.microseconds(now)}`,
    });
    this.#server = engine;
    this.#options = options;
    this.names = options.names;
    this.taskRetentionMs = options.taskRetentionMs;
    this.#database = database;
  }

  assertUsable(): void {
    this.gate.assertUsable();
  }

  moment(of: "look" | "write" | "within"): Moment {
    return of === "look" ? { now: this.#clock, guard: raw(failsUnlessAlone) } : bySettings;
  }

  async look(statement: Sql): Promise<readonly Row[]> {
    try {
      return await this.#server.run(name, numbered(statement), [...statement.values]);
    } catch (error) {
      throw sqlStateOf(error) === divisionByZero
        ? new Error(`${name}: ${inTransaction}`, { cause: error })
        : error;
    }
  }

  /** A step that is answered must have happened: not in a transaction that goes on, nor lost by a crash. */
  async write(chains: readonly Chain[]): Promise<readonly Row[]> {
    const isBounded = `set_config('lock_timeout', '${this.#options.lockTimeoutMs}', true) IS NOT NULL`;
    return this.look(this.#composed(chains, `${failsUnlessAlone} AND ${isBounded} AND ${isDurable}`));
  }

  *within({ tx, isHandlers }: StepWithin<Tx>, chain: Chain): Steps<readonly Row[]> {
    const statement = this.#composed([chain], isTold);
    const send = (): Promise<readonly Row[]> => this.#send(tx, statement);
    const gate = isHandlers ? this.#database?.gateOf(tx) : undefined;
    // What a handler adds, also where it is there already, is what it was to write.
    return yield* answerOf(gate?.send(send, () => "write") ?? send());
  }

  #composed(chains: readonly Chain[], isReady: string): Sql {
    const settings = fragment`SELECT ${raw(isReady)} AS is_ready, ${this.#clock} AS now_us`;
    return composed(chains, settings, this.dialect.among);
  }

  get #clock(): Sql {
    const { now } = this.#options;
    return now === undefined
      ? serverClock
      : fragment`${bound(String(Date.parse(now()) * 1_000))}::text::bigint`;
  }

  async #send(tx: Tx, statement: Sql): Promise<readonly Row[]> {
    if (this.#database === undefined) throw new TypeError(`${name}: this one is for operators alone`);
    try {
      return await this.#database.query(tx, numbered(statement), statement.values);
    } catch (error) {
      throw explained(name, this.names, error);
    }
  }
}
