/**
 * What SQLite and PostgreSQL write differently. The ledgers of both are made of the same statements, so that a rule cannot
 * hold on one of them alone. A `?` stands for each bound value, in order.
 */
export interface SqlDialect {
  /** Stands before the name of a table. */
  readonly schema: string;
  /** The present time in milliseconds since 1970, by way of one bound value. */
  readonly now: string;
  /** Ends a SELECT whose row is about to be changed: passes over rows that another process is about to change. */
  readonly skipLocked: string;
}
