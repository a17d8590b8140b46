import type { Among, Found } from "./chain.ts";
import type { Columns, SqlDialect } from "../sql/dialect.ts";
import { joined, raw, fragment, type Sql } from "../sql/sql.ts";
import { assigned } from "../sql/statements.ts";

/** By their quoted names. */
export interface TaskTables {
  readonly lanes: string;
  readonly tasks: string;
  readonly queues: string;
  readonly newest: string;
}

/** A value of a row before it is written. A digest is hexadecimal. */
export type Input = string | number | undefined;

export type InputType = "digest" | "text" | "integer";

/** Writes an input of a row, by its name. */
export type WriteInput = (name: string) => Sql;

/** New rows, in the order in which they are locked. */
export interface Rows {
  readonly into: string;
  /** What differs from row to row. */
  readonly inputs: Readonly<Record<string, InputType>>;
  readonly rows: readonly Readonly<Record<string, Input>>[];
  /** The columns of a row. */
  readonly columns: (input: WriteInput) => Columns;
}

export interface Upsert extends Rows {
  /** A condition that every row is written by; it may throw instead. */
  readonly guard: Sql;
  /** What is written into a row that is there. */
  readonly set: Columns;
  /** A column that is given of each row, besides its digest. */
  readonly giving: string;
}

/** Tasks: their inputs have a `lane`, and how far a number is `behind` the `last_number` of that. */
export interface TaskInsert extends Rows {
  readonly lanes: Found;
  /** Of this call alone. */
  readonly mark: Sql;
}

export interface Change {
  readonly of: string;
  readonly as: "lane" | "task";
  readonly set: Columns;
  readonly where: Sql;
}

/** How an engine writes the statements of tasks. */
export interface TaskDialect extends SqlDialect {
  /** What the numbers of new tasks are above, besides the time; for an engine whose clock stands still for a while. */
  numbersAbove(tasks: string, queue: Sql): Sql;
  /** A condition: whether a digest is one of these. */
  readonly among: Among;
  /** A value for each of these digests. */
  each(column: Sql, type: InputType, values: readonly (readonly [digest: string, value: Input])[]): Sql;
  /** A digest in hexadecimal, of small letters. Of NULL it may be empty. */
  hex(column: Sql): Sql;
  /** Columns: a digest as `hex`, and where a statement goes on by it, as `digest`. */
  found(column: Sql): Sql;
  /** Behind the name of a table: by which index its rows are found. Empty where the engine finds it by itself. */
  byIndex(name: TaskIndex): Sql;
  /** Behind a SELECT of one table: locks its rows in the order of their keys. Empty where nobody else writes meanwhile. */
  forUpdate(key: Sql): Sql;
  /** The same for those of the rows that nobody has locked. */
  readonly skipLocked: Sql;
  /** Adds rows, or changes and locks those that are there, one after the other. Gives every one of them. */
  upsert(upsert: Upsert): readonly Sql[];
  /** Adds the tasks whose digest is unknown, one after the other. Gives those alone. */
  addUnknown(insert: TaskInsert): readonly Sql[];
  /** Changes rows that are locked: lanes as `lane`, or tasks as `task`. */
  change(change: Change): Sql;
  /** Both, each task with its lane. */
  changeBoth(lanes: Change, tasks: Change): readonly Sql[];
}

/** The primary key, and those of {@link taskTables}. */
type TaskIndex = "primary" | "due" | "heads" | "states";

/** The ends of statements with ON CONFLICT and RETURNING. */
export const withReturning = {
  upserted: ({ set, giving }: Pick<Upsert, "set" | "giving">, { found }: Pick<TaskDialect, "found">): Sql =>
    fragment`ON CONFLICT (digest) DO UPDATE SET ${assigned(set)} RETURNING ${found(raw("digest"))}, ${raw(giving)}`,
  added: ({ found }: Pick<TaskDialect, "found">): Sql =>
    fragment`ON CONFLICT (digest) DO NOTHING RETURNING ${found(raw("digest"))}`,
};

type Writers = Pick<TaskDialect, InputType>;

/** Writes an input. */
export function written(dialect: Writers, type: InputType, value: Input): Sql {
  if (value === undefined) return raw("NULL");
  if (type === "integer") return dialect.integer(Number(value));
  return dialect[type](String(value));
}

/** {@link TaskDialect.among} and {@link TaskDialect.each} as lists of values. */
export function listsOf(dialect: Writers): Pick<TaskDialect, "among" | "each"> {
  return {
    among(column, digests) {
      if (digests.length === 0) return raw("1 = 0");
      return fragment`${column} IN (${joined(digests.map((digest) => dialect.digest(digest)))})`;
    },
    each(column, type, values) {
      const cases = values.map(
        ([digest, value]) => fragment`WHEN ${dialect.digest(digest)} THEN ${written(dialect, type, value)}`,
      );
      return fragment`CASE ${column} ${joined(cases, " ")} END`;
    },
  };
}

/** Begins an INSERT of these rows as a list of values. */
export function insertOf(dialect: Writers, { into, inputs, rows, columns }: Rows, guard?: Sql): Sql {
  const all = rows.map((row) => columns((name) => written(dialect, inputs[name] ?? "text", row[name])));
  const values = all.map((row) => {
    const { digest = raw("NULL"), ...others } = row;
    const guarded = guard === undefined ? digest : fragment`CASE WHEN ${guard} THEN ${digest} END`;
    return fragment`(${joined([guarded, ...Object.values(others)])})`;
  });
  const names = Object.keys(all[0] ?? {}).filter((name) => name !== "digest");
  return fragment`INSERT INTO ${raw(into)} (${raw(["digest", ...names].join(", "))}) VALUES ${joined(values, ",\n")}`;
}

/** The same of tasks, whose lanes are known. */
export function insertOfTasks(dialect: Writers, { into, inputs, rows, columns, lanes }: TaskInsert): Sql {
  return insertOf(dialect, {
    into,
    inputs: { ...inputs, number: "integer" },
    rows: rows.map((row) => ({
      ...row,
      number: lanes.lastNumberOf(String(row["lane"])) - Number(row["behind"]),
    })),
    columns: (input) => ({ ...columns(input), number: input("number") }),
  });
}

/** `from`: behind the columns. */
export function changeOf({ of, as, set, where }: Change, from = ""): Sql {
  return fragment`UPDATE ${raw(of)} AS ${raw(as)} SET ${assigned(set)} ${raw(from)} WHERE ${where}`;
}
