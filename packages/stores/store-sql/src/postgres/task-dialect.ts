import { bound, joined, raw, fragment, type Sql } from "../sql/sql.ts";
import {
  changeOf,
  withReturning,
  written,
  type Rows,
  type TaskDialect,
  type WriteInput,
} from "../work/dialect.ts";
import { dialect } from "./dialect.ts";

/** The type of an input in JSON, and how a column reads it. */
const inJson = {
  digest: { type: "text", read: (value: string) => `decode(${value}, 'hex')` },
  integer: { type: "bigint", read: (value: string) => value },
  text: { type: "text", read: (value: string) => value },
} as const;

/**
 * How PostgreSQL writes the statements of tasks. Several values are one, an array or JSON: a statement stays the same for any number of
 * them, and the server reads it in a fraction of the time that it takes for a list.
 */
export const taskDialect: TaskDialect = {
  numbersAbove: () => raw("0"),
  ...dialect,
  among(column, digests) {
    const [first = "", ...others] = digests;
    if (others.length === 0) return fragment`${column} = ${dialect.digest(first)}`;
    const array = `{${digests.map((digest) => String.raw`"\\x${digest}"`).join(",")}}`;
    return fragment`${column} = ANY (${bound(array)}::text::bytea[])`;
  },
  each(column, type, values) {
    const [[, first] = [], ...others] = values;
    if (others.length === 0) return written(dialect, type, first);
    const found = fragment`(${json(Object.fromEntries(values))} ->> encode(${column}, 'hex'))`;
    if (type === "integer") return fragment`${found}::bigint`;
    return type === "text" ? found : fragment`decode(${found}, 'hex')`;
  },
  hex: (column) => fragment`encode(${column}, 'hex')`,
  found: (column) => fragment`${column} AS digest, encode(${column}, 'hex') AS hex`,
  byIndex: () => raw(""),
  forUpdate: (key) => fragment`ORDER BY ${key} FOR UPDATE`,
  skipLocked: raw("FOR UPDATE SKIP LOCKED"),
  upsert: (upsert) => [
    fragment`${insertFrom(upsert)} WHERE ${upsert.guard} ${withReturning.upserted(upsert, taskDialect)}`,
  ],
  change: (change) => changeOf(change, "FROM settings"),
  changeBoth: (lanes, tasks) => [taskDialect.change(lanes), taskDialect.change(tasks)],
  addUnknown(insert) {
    const { columns, lanes } = insert;
    const withNumber = (input: WriteInput) => ({
      ...columns(input),
      number: fragment`lanes.last_number - ${input("behind")}`,
    });
    const isOf =
      insert.rows.length === 1
        ? ""
        : `ON lanes.digest = ${inJson.digest.read("added.lane")} ORDER BY added.digest`;
    return [
      fragment`${insertFrom({ ...insert, columns: withNumber })} ${raw(isOf === "" ? "CROSS JOIN" : "JOIN")} ${raw(lanes.step ?? "")} AS lanes ${raw(isOf)}
${withReturning.added(taskDialect)}`,
    ];
  },
};

function json(value: unknown): Sql {
  return fragment`${bound(JSON.stringify(value))}::text::jsonb`;
}

/** A single row is no JSON: its plan is made in half the time. */
function insertFrom({ into, inputs, rows, columns }: Rows): Sql {
  const [first = {}, ...others] = rows;
  const isSingle = others.length === 0;
  const values = columns((name) => {
    const type = inputs[name] ?? "text";
    return isSingle ? written(dialect, type, first[name]) : raw(inJson[type].read(`added.${name}`));
  });
  const types = Object.entries(inputs).map(([name, type]) => `${name} ${inJson[type].type}`);
  const added = fragment`CROSS JOIN jsonb_to_recordset(${json(rows)}) AS added (${raw(types.join(", "))})`;
  return fragment`INSERT INTO ${raw(into)} AS stored (${raw(Object.keys(values).join(", "))})
SELECT ${joined(Object.values(values))} FROM settings ${isSingle ? raw("") : added}`;
}
