import type { Row } from "@countersign/idempotency/store";

/** Reads what {@link assertEngine} checks. A statement by itself: another engine may lack what further checks read. */
export const readEngine = "SELECT version() AS engine";

/** True for what `version()` of PostgreSQL itself returns. CockroachDB begins with its own name, and YugabyteDB adds `-YB-`. */
export function isPostgres(engine: string): boolean {
  return engine.startsWith("PostgreSQL ") && !engine.includes("-YB-");
}

/** Throws on a server that only speaks PostgreSQL's protocol: what it promises of locks and transactions is another thing. */
export function assertEngine(caller: string, row: Row): void {
  const engine = String(row["engine"]);
  if (isPostgres(engine)) return;
  throw new Error(
    `${caller}: the server is ${engine}, on which the stores were never tried; use PostgreSQL 13 or newer`,
  );
}
