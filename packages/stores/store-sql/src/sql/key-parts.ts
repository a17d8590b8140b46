import type { IdempotencyListQuery } from "@countersign/idempotency";
import type { Row } from "@countersign/idempotency/store";
import type { Sql } from "./sql.ts";

/** What an engine has of its own in the statements of keys. */
export interface KeyParts {
  /** A table of one row, named `session`, beside which a look finds the key's row or nulls. It gives `is_alone`. */
  readonly session: { readonly columns: Sql; readonly from: Sql; readonly where: Sql };
  /**
   * The lowest fence that a new key may have, above those that were pruned. Undefined where no statement gives the fence back that it has
   * written: then the look of {@link KeyParts.session} gives `highest_fence`.
   */
  readonly floor: Sql | undefined;
  /**
   * True where a look comes before the INSERT: a duplicate is told by one message, writes nothing, and waits for no transaction. An INSERT
   * that comes first would lock the row that it finds. No row comes and goes in between: it outlives by hours whoever has not seen it.
   */
  readonly looksFirst: boolean;
  /** Behind the columns of a look: makes its commit wait until the standbys have a key that it finds done. */
  readonly confirming: { readonly alone: Sql; readonly within: Sql };
  /** Behind a table whose rows are found by their keys, in a transaction. */
  readonly byKey: Sql;
  /** Ends a look in a transaction: what it finds is not older than its wait. */
  readonly locking: Sql;
  /** The condition that a key is in a state, as an index has it. */
  isIn(state: IdempotencyListQuery["state"]): Sql;
  /** The column `key`, a text by which pages are ordered too. */
  readonly key: Sql;
  /** The same, and what {@link KeyParts.keyOf} reads besides. */
  readonly listed: Sql;
  /** The column by which an index orders the pages. */
  readonly order: Sql;
  /** What stands before a page, from its cursor. Throws a TypeError where no page has ended so. */
  pageAfter(store: string, before: string): Sql;
  keyOf(row: Row): string;
  /** The condition that a row is of one of these keys. */
  areOf(keys: readonly string[]): Sql;
  /** A key as the column `key` gives it. */
  keyText(key: string): string;
}
