import { runStepsNow, type Row, type Steps } from "@countersign/idempotency/store";
import { inTurn, type Chain } from "../work/chain.ts";
import type { TaskDialect, TaskTables } from "../work/dialect.ts";
import { PrunedTable } from "../sql/pruned-table.ts";
import { raw, fragment, type Sql } from "../sql/sql.ts";
import type { Moment, StepWithin, TaskEngine } from "../work/task-engine.ts";
import { TaskStore } from "../work/tasks.ts";
import { type SqliteDatabase, assertConnection, assertInTransaction, endTransaction } from "./connection.ts";
import { whenWritable } from "./durability.ts";
import type { Engine } from "./engine.ts";
import type { ResolvedSqliteOptions } from "./options.ts";
import { takeWriteLock } from "./schema.ts";
import { taskDialect } from "./task-dialect.ts";

const name = "sqlite work store";

export function sqliteWorkStore<Db extends SqliteDatabase>(
  engine: Engine<Db>,
  options: ResolvedSqliteOptions,
): TaskStore<Db, "sync"> {
  return new TaskStore(new SqliteTasks(engine, options));
}

/** Runs each step in one turn. */
class SqliteTasks<Db extends SqliteDatabase> extends PrunedTable<"sync"> implements TaskEngine<Db, "sync"> {
  readonly dialect: TaskDialect;
  readonly names: TaskTables;
  readonly taskRetentionMs: number;
  readonly #database: Db;
  readonly #lockSql: string;
  readonly #engine: Engine<Db>;

  constructor(engine: Engine<Db>, options: ResolvedSqliteOptions) {
    const { dialect } = engine;
    super(engine, name, {
      table: engine.names.tasks,
      key: ["digest"],
      until: "until_us",
      // Each by the retention of the process that ended it: a command knows none.
      isExpired: (now) => fragment`until_us <= ${dialect.microseconds(now)}`,
    });
    const { table, taskRetentionMs } = options;
    this.#engine = engine;
    this.#database = engine.database;
    this.dialect = taskDialect(table);
    this.names = engine.names;
    this.taskRetentionMs = taskRetentionMs;
    this.#lockSql = takeWriteLock(table);
  }

  assertUsable(): void {
    this.gate.assertUsable();
  }

  moment(): Moment {
    return {
      // Rows are written one after the other: by clocks of their own a later task could have a lower number.
      now: this.dialect.microseconds(this.#engine.instant()),
      guard: raw("1 = 1"),
    };
  }

  async look(statement: Sql): Promise<readonly Row[]> {
    return this.#run(statement);
  }

  async write(chains: readonly Chain[]): Promise<readonly Row[]> {
    const [database, assertUsable] = [this.#database, () => this.assertUsable()];
    return whenWritable({ name, database, assertUsable }, () =>
      endTransaction(name, database, () => {
        const [first = []] = chains.map((chain) => runStepsNow(this.#inTurn(chain)));
        return first;
      }),
    );
  }

  *within({ tx }: StepWithin<Db>, chain: Chain): Steps<readonly Row[]> {
    assertConnection(name, this.#database, tx);
    assertInTransaction(name, this.#database);
    // Where BEGIN has not: in libsql a prepared statement that met SQLITE_BUSY would make later COMMITs fail.
    this.#database.exec(this.#lockSql);
    return yield* this.#inTurn(chain);
  }

  #inTurn(chain: Chain): Steps<readonly Row[]> {
    return inTurn(chain, this.dialect.among, (statements) =>
      statements.flatMap((statement) => this.#run(statement)),
    );
  }

  #run(statement: Sql): readonly Row[] {
    if (statement.text.startsWith("SELECT")) return this.#engine.query(statement);
    if (statement.text.includes("RETURNING")) return this.#engine.query(statement, 1);
    this.#engine.run(statement);
    return [];
  }
}
