import { inTurn, type Chain } from "../work/chain.ts";
import type { TaskDialect, TaskTables } from "../work/dialect.ts";
import { bound, raw, fragment, type Sql } from "../work/sql.ts";
import type { Moment, StepWithin, TaskEngine } from "../work/task-engine.ts";
import { TaskStore } from "../work/tasks.ts";
import type { Steps } from "@countersign/idempotency/internal";
import { runStepsNow, type PrunedBatch, type Row } from "@countersign/idempotency/store";
import {
  type SqliteDatabase,
  type SqliteStatement,
  assertConnection,
  assertInTransaction,
  endTransaction,
  singleRow,
} from "./connection.ts";
import { whenWritable } from "./durability.ts";
import { takeWriteLock } from "./key-table.ts";
import { factoryName, type ResolvedSqliteOptions } from "./options.ts";
import { PrunedTable } from "./pruning.ts";
import { engineClock, tableNames } from "./schema.ts";
import { taskDialect } from "./task-dialect.ts";

const name = "sqlite work store";

// A statement's text differs by the number of its tasks alone.
const mostPrepared = 300;

export function sqliteWorkStore<Db extends SqliteDatabase>(
  database: Db,
  options: ResolvedSqliteOptions,
): TaskStore<Db, "sync"> {
  return new TaskStore(new SqliteTasks(database, options));
}

/** Runs each step in one turn. */
class SqliteTasks<Db extends SqliteDatabase> extends PrunedTable implements TaskEngine<Db, "sync"> {
  readonly mode = "sync";
  readonly name = name;
  readonly dialect: TaskDialect;
  readonly names: TaskTables;
  readonly taskRetentionMs: number;
  readonly #database: Db;
  readonly #lockSql: string;
  readonly #removeDone: SqliteStatement<unknown>;
  /** Statements belong to the connection that prepared them. */
  readonly #prepared = new Map<string, SqliteStatement<unknown>>();

  constructor(database: Db, options: ResolvedSqliteOptions) {
    super(name, factoryName, options);
    const { table, taskRetentionMs } = options;
    this.#database = database;
    this.dialect = taskDialect(table);
    this.names = tableNames(table);
    this.taskRetentionMs = taskRetentionMs;
    this.#lockSql = takeWriteLock(table);
    const { tasks } = this.names;
    // Each by the retention of the process that ended it: a command knows none.
    this.#removeDone = database.prepare(
      `DELETE FROM ${tasks} WHERE rowid IN (SELECT rowid FROM ${tasks}
         WHERE until_us IS NOT NULL AND until_us <= coalesce(?, ${engineClock}) * 1000 ORDER BY until_us LIMIT ?)`,
    );
  }

  assertUsable(): void {
    this.gate.assertUsable();
  }

  moment(): Moment {
    const nowMs = this.options.now();
    return {
      now: nowMs === null ? raw(`(${engineClock} * 1000)`) : fragment`${bound(nowMs * 1_000)}`,
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

  protected removeBatch(): PrunedBatch {
    return this.removeWhole(this.#removeDone);
  }

  #inTurn(chain: Chain): Steps<readonly Row[]> {
    return inTurn(chain, this.dialect.among, (statements) =>
      statements.flatMap((statement) => this.#run(statement)),
    );
  }

  #run({ text, values }: Sql): readonly Row[] {
    const prepared = this.#prepared.get(text) ?? this.#prepare(text);
    if (text.startsWith("SELECT")) return prepared.all(...values).map(singleRow);
    if (!text.includes("RETURNING")) {
      prepared.run(...values);
      return [];
    }
    // Of one row each.
    const row = prepared.get(...values);
    return row === undefined || row === null ? [] : [singleRow(row)];
  }

  #prepare(text: string): SqliteStatement<unknown> {
    if (this.#prepared.size >= mostPrepared) this.#prepared.clear();
    const prepared = this.#database.prepare(text);
    this.#prepared.set(text, prepared);
    return prepared;
  }
}
