import { causedBy } from "@countersign/core/internal";

/** SQLSTATE: nothing tells whether the transaction has committed. */
const unknown = "08007";

/** Where the server says that the wait of a commit for its synchronous standbys was cancelled. It answers with success all the same. */
const cancelledIn = "SyncRepWaitForLSN";

/** How many such warnings a connection has had. One listener each, as long as the connection: pools lend it again and again. */
const warnings = new WeakMap<object, { count: number }>();

/**
 * Sends something on a connection of `pg`. Rejects with SQLSTATE 08007 when a commit meanwhile was cancelled while it waited for a
 * synchronous standby: this server has it, and the one that takes its place may not. What tells no warnings is sent as it is.
 */
export async function watchCommits<T>(connection: unknown, send: () => PromiseLike<T> | T): Promise<T> {
  const seen = warningsOf(connection);
  if (seen === undefined) return send();
  const { count } = seen;
  let result: T;
  try {
    result = await send();
  } catch (error) {
    // A statement behind the commit, in the same message, may have failed.
    throw seen.count > count ? commitUnconfirmed(error) : error;
  }
  if (seen.count > count) throw commitUnconfirmed();
  return result;
}

/** Of a commit that the server has, and of which nobody knows whether a synchronous standby has it. */
export function commitUnconfirmed(cause?: unknown): Error {
  const message =
    "the commit's wait for a synchronous standby was cancelled: after a failover it may be as if it had never been";
  return Object.assign(new Error(message, causedBy(cause)), { code: unknown });
}

/** Whether {@link watchCommits} is told of such a commit on the connection. */
export function tellsWarnings(connection: unknown): connection is Emitter {
  return (
    typeof connection === "object" &&
    connection !== null &&
    typeof Reflect.get(connection, "on") === "function"
  );
}

interface Emitter {
  on(event: "notice", listener: (notice: unknown) => void): unknown;
}

function warningsOf(connection: unknown): { readonly count: number } | undefined {
  if (!tellsWarnings(connection)) return undefined;
  const known = warnings.get(connection);
  if (known !== undefined) return known;
  const made = { count: 0 };
  warnings.set(connection, made);
  connection.on("notice", (notice) => {
    if (Reflect.get(Object(notice), "routine") === cancelledIn) made.count += 1;
  });
  return made;
}
