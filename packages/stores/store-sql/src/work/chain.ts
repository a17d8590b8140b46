import type { Awaitable } from "@countersign/idempotency";
import { answerOf, type Row, type Steps } from "@countersign/idempotency/store";
import { integerOf } from "../sql/values.ts";
import { joined, raw, fragment, type Sql } from "../sql/sql.ts";

/** The rows of a chain's last find, by the digests that it gives. */
export interface Found {
  /** SQL: whether a digest is one of theirs. */
  has(column: Sql): Sql;
  /** Of these the ones whose lanes were found, as a condition for `task`. */
  tasksOf(tasks: readonly TaskOfLane[]): Sql;
  /** The step of the same statement that has found them, with the columns that it gives; undefined where they are known. */
  readonly step: string | undefined;
  /** The `last_number` of a found lane that is known. */
  lastNumberOf(lane: string): number;
}

export interface TaskOfLane {
  readonly task: string;
  readonly lane: string;
}

/**
 * A part of a step: finds and locks rows, or changes those that were found. A find gives `hex`, the digest of each row. `change` follows a
 * find, and its rows are locked; what it changes is no find's concern.
 */
export type Part =
  | { readonly find: (found: Found) => readonly Sql[] }
  | { readonly change: (found: Found) => readonly Sql[] };

/** The parts of a step, which commits as a whole. Where a find finds nothing, nothing more happens. Its result is what the last find gives. */
export type Chain = readonly Part[];

/** Writes whether a digest is one of these. */
export type Among = (column: Sql, digests: readonly string[]) => Sql;

/** Takes a chain's statements in turn. `send` sends some of them, none behind one that fails, and gives their rows. */
export function* inTurn(
  chain: Chain,
  among: Among,
  send: (statements: readonly Sql[]) => Awaitable<readonly Row[]>,
): Steps<readonly Row[]> {
  let rows: readonly Row[] = [];
  for (const part of chain) {
    const found = foundRows(rows, among);
    if ("change" in part) yield* answerOf(send(part.change(found)));
    else {
      rows = yield* answerOf(send(part.find(found)));
      if (rows.length === 0) break;
    }
  }
  return rows;
}

function foundRows(rows: readonly Row[], among: Among): Found {
  const byDigest = new Map(rows.map((row) => [String(row["hex"]), row]));
  return {
    has: (column) => among(column, [...byDigest.keys()]),
    tasksOf: (tasks) => {
      const own = tasks.filter(({ lane }) => byDigest.has(lane));
      return among(
        raw("task.digest"),
        own.map(({ task }) => task),
      );
    },
    step: undefined,
    lastNumberOf: (lane) => integerOf(byDigest.get(lane)?.["last_number"]),
  };
}

/**
 * One statement of whole chains that have nothing to do with each other, for PostgreSQL. It gives what the first of them gives. `settings` is
 * the only row of a table of that name. Each change waits for its find: an array is made before it is compared with.
 */
export function composed(chains: readonly Chain[], settings: Sql, among: Among): Sql {
  const steps = [fragment`settings AS MATERIALIZED (${settings})`];
  let result: Sql | undefined;
  for (const chain of chains) {
    let found = "";
    for (const part of chain) {
      const statements =
        "find" in part ? part.find(foundBy(found, among)) : part.change(foundBy(found, among));
      for (const statement of statements) {
        const name = `step_${steps.length}`;
        steps.push(fragment`${raw(name)} AS MATERIALIZED (${statement})`);
        if ("find" in part) found = name;
      }
    }
    result ??= fragment`SELECT * FROM ${raw(found)}`;
  }
  return fragment`WITH ${joined(steps, ",\n")}\n${result ?? raw("SELECT")}`;
}

function foundBy(step: string, among: Among): Found {
  const has = (column: Sql): Sql => fragment`${column} = ANY (ARRAY(SELECT digest FROM ${raw(step)}))`;
  return {
    has,
    tasksOf: (tasks) =>
      fragment`${among(
        raw("task.digest"),
        tasks.map(({ task }) => task),
      )} AND ${has(raw("task.lane"))}`,
    step,
    lastNumberOf() {
      throw new TypeError("what a step of the same statement gives is not known");
    },
  };
}
