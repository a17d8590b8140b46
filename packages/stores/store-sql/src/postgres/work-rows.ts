// Parts of the functions of the work store: how they find and lock rows.

/**
 * Finds one row by its primary key when its order is asked for, too: no other index has the range in that order. Among indexes of one page
 * each a plan takes any, and is kept when they have grown.
 */
export function only(row: string, column: "id" | "lane", queue: string, value: string): string {
  return `${row}.queue = ${queue} AND ${row}.${column} BETWEEN ${value} AND ${value}`;
}

/**
 * The same for a row, alias `kept`, whose address stays: one that the transaction has locked, or a task that nobody owns and whose lane it
 * has locked.
 */
export function locked(table: string, column: "id" | "lane", queue: string, value: string): string {
  return `kept.ctid = (SELECT found.ctid FROM ${table} AS found
        WHERE ${only("found", column, queue, value)} ORDER BY found.${column} LIMIT 1) AND kept.${column} = ${value}`;
}

/** Locks an owned task, so that its address stays: its owner renews the lease without a lock on the lane. */
export function lockTask(tasks: string, queue: string, id: string): string {
  return `FROM ${tasks} AS kept WHERE ${only("kept", "id", queue, id)} ORDER BY kept.id LIMIT 1 FOR UPDATE;`;
}

export function headOf(tasks: string, lane: string, queue: string): string {
  return `SELECT waiting.id, waiting.due_at INTO head FROM ${tasks} AS waiting
      WHERE ${only("waiting", "lane", queue, lane)} AND waiting.state = 'open'
      ORDER BY waiting.lane, waiting.number LIMIT 1;`;
}
