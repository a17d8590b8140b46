/** True; lets the server warn of a commit whose wait for a standby was cancelled. It says that in no other way. */
export const isTold =
  "(current_setting('client_min_messages') <> 'error' OR set_config('client_min_messages', 'warning', true) IS NOT NULL)";

/** True; makes this commit durable. A claim that a crash of the server undoes would let a second attempt in beside the first. */
export const isDurable: string = `(current_setting('synchronous_commit') <> 'off' OR set_config('synchronous_commit', 'on', true) IS NOT NULL) AND ${isTold}`;

/**
 * SQL: makes the transaction one whose commit waits for the synchronous standbys, as all that was committed before it must then be there.
 * A look at what another one has committed waits for nothing: its wait may have been cancelled.
 */
export const waitForStandbys = "pg_logical_emit_message(true, 'countersign', '')::text";

/** Whether the server has synchronous standbys to wait for. */
export const hasStandbys = "current_setting('synchronous_standby_names') <> ''";
