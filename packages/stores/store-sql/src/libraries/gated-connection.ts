import { EventEmitter } from "node:events";
import { isPromiseLike } from "@countersign/core/internal";
import { pooledClients, type StatementEffect, type StatementGate } from "@countersign/idempotency/store";

/** How a driver's connection answers a call without a callback: `pg` and `mysql2/promise` by a promise, `mysql2` by events. */
export type CallStyle = "promise" | "events";

const senders = ["query", "execute", "prepare"] as const;
/** Methods of `mysql2` that end the transaction; the last two begin the session again. */
export const ends = ["beginTransaction", "commit", "rollback", "changeUser", "reset"] as const;

/**
 * The driver's connection as a handler's library may use it: its statements pass the gate. The library's own COMMIT or ROLLBACK passes where
 * the gate says so.
 */
export function gatedConnection<Connection extends object>(
  caller: string,
  connection: Connection,
  gate: StatementGate,
  style: CallStyle,
): Connection {
  const members = new Map<string, unknown>();
  for (const name of senders) {
    const method: unknown = Reflect.get(connection, name);
    if (typeof method !== "function") continue;
    const send = (values: readonly unknown[]): unknown => Reflect.apply(method, connection, [...values]);
    // What a prepared statement executes later passes the gate too.
    const given =
      name === "prepare"
        ? (statement: unknown): unknown => gatedStatement(Object(statement), gate, style)
        : undefined;
    members.set(name, (...values: unknown[]) => sendThrough({ gate, style, values, send, given }));
  }
  for (const name of ends) {
    if (typeof Reflect.get(connection, name) === "function") members.set(name, refusedEnd(caller, name));
  }
  const { promise, connection: inner } = Object(connection);
  if (typeof promise === "function") {
    // Of mysql2: the same connection with promises.
    members.set("promise", () =>
      gatedConnection(caller, Object(Reflect.apply(promise, connection, [])), gate, "promise"),
    );
  } else if (style === "promise" && typeof inner?.query === "function") {
    // Of mysql2/promise: the same connection with callbacks.
    members.set("connection", gatedConnection(caller, inner, gate, "events"));
  }
  return pooledClients.with(connection, Object.fromEntries(members));
}

/** A prepared statement of `mysql2`, whose text has passed the gate, as its executions do. */
export function gatedStatement<Statement extends object>(
  statement: Statement,
  gate: StatementGate,
  style: CallStyle,
): Statement {
  const execute: unknown = Reflect.get(statement, "execute");
  const send = (values: readonly unknown[]): unknown =>
    Reflect.apply(Object(execute), statement, [...values]);
  return pooledClients.with(statement, {
    execute: (...values: unknown[]) => sendThrough({ gate, style, values, send, isPrepared: true }),
  });
}

/** A method of the driver's that would end the transaction under the store. It throws. */
export function refusedEnd(caller: string, name: string): () => never {
  return () => {
    throw new Error(
      `${caller}: ${name}() is not the handler's: the transaction commits when the handler returns, and rolls back when it throws`,
    );
  };
}

export interface Sending {
  readonly gate: StatementGate;
  readonly style: CallStyle;
  readonly values: readonly unknown[];
  /** The driver's own call. */
  readonly send: (values: readonly unknown[]) => unknown;
  /** What the handler is given for a result. Default: the result. */
  readonly given?: ((result: unknown) => unknown) | undefined;
  /** Whether the text has passed already, and comes not again. */
  readonly isPrepared?: boolean | undefined;
}

/** Sends a handler's statement through the gate by the driver's own call, which answers by a callback, a promise or events. */
export function sendThrough(sending: Sending): unknown {
  const { gate, values, send, given, isPrepared } = sending;
  const text = isPrepared === true ? undefined : textOf(values[0]);
  if (!gate.isOpen) return gate.isEnd(text) ? send(values) : refuse(sending, gate.refusal());
  const forbidden = isPrepared === true ? undefined : gate.forbids(text);
  if (forbidden !== undefined) return refuse(sending, forbidden);
  const answered = gate.begin();
  try {
    const place = values.findIndex((value) => typeof value === "function");
    const callback = values[place];
    if (typeof callback === "function") {
      const all = [...values];
      all[place] = function answer(
        this: unknown,
        error: unknown,
        result: unknown,
        ...more: unknown[]
      ): unknown {
        answered(error ? "idle" : effectOf(text, result));
        return Reflect.apply(callback, this, [error, given && !error ? given(result) : result, ...more]);
      };
      return send(all);
    }
    const sent = send(values);
    // Before it is asked whether it is a promise: a query of mysql2 has a then() that throws.
    if (sent instanceof EventEmitter) {
      for (const name of ["end", "error", "close"]) sent.once(name, () => answered());
    } else if (isPromiseLike(sent)) {
      sent.then(
        (result) => answered(effectOf(text, result)),
        () => answered("idle"),
      );
      return given === undefined ? sent : sent.then(given);
    } else answered();
    return sent;
  } catch (error) {
    answered("idle");
    throw error;
  }
}

/** Refuses a statement in the way in which the driver tells of errors: a throw out of a timer would end the process. */
function refuse({ gate, style, values }: Sending, error: Error): unknown {
  const callback = values.find((value) => typeof value === "function");
  const [first] = values;
  if (typeof callback === "function") {
    process.nextTick(() => Reflect.apply(callback, undefined, [error]));
    return new EventEmitter();
  }
  const handleError: unknown = Reflect.get(Object(first), "handleError");
  if (typeof handleError === "function") {
    // A query object of pg, such as a cursor.
    process.nextTick(() => Reflect.apply(handleError, first, [error, undefined]));
    return first;
  }
  if (style === "promise") return gate.refuse(error);
  const refused = new EventEmitter();
  process.nextTick(() => {
    if (refused.listenerCount("error") > 0) refused.emit("error", error);
  });
  return refused;
}

/** Of a text, a query object, or one of `pg` around a cursor. */
function textOf(first: unknown): string | undefined {
  if (typeof first === "string") return first;
  const {
    text,
    sql,
    cursor,
  }: { readonly text?: unknown; readonly sql?: unknown; readonly cursor?: unknown } = Object(first);
  const texts = [text, sql, Reflect.get(Object(cursor), "text")];
  return texts.find((one): one is string => typeof one === "string");
}

const call = /^(?:\s|--[^\n]*\n|\/\*[\s\S]*?\*\/)*CALL\b/i;
const writes: ReadonlySet<unknown> = new Set(["INSERT", "UPDATE", "DELETE", "MERGE", "COPY"]);
const mostResults = 64;

// PostgreSQL counts a SELECT that locks rows as a command that may write.
const locks = /\bFOR\s+(?:NO\s+KEY\s+UPDATE|UPDATE|KEY\s+SHARE|SHARE)\b/i;

/** What the text of a statement and the driver's result tell of its effect. */
export function effectOf(text: string | undefined, result: unknown): StatementEffect {
  if (text !== undefined && call.test(text)) return "write";
  const rows = changedRows(result);
  if (rows !== undefined) return rows > 0 ? "write" : "idle";
  return text !== undefined && locks.test(text) ? "idle" : undefined;
}

/** pg has one result or a list of them; mysql2 a header or rows, a list of these, and with promises the fields beside them. */
function changedRows(result: unknown): number | undefined {
  if (!Array.isArray(result)) return changedBy(result);
  const each = result.slice(0, mostResults).flatMap((one: unknown) => {
    const all: readonly unknown[] = Array.isArray(one) ? one.slice(0, mostResults) : [one];
    return all.flatMap((single) => changedBy(single) ?? []);
  });
  return each.length === 0 ? undefined : Math.max(...each);
}

function changedBy(result: unknown): number | undefined {
  if (typeof result !== "object" || result === null) return undefined;
  // Of mysql2, by its class: a row can have a column of any name.
  if (result.constructor?.name === "ResultSetHeader") return Number(Reflect.get(result, "affectedRows"));
  const { command, rowCount, fields }: { command?: unknown; rowCount?: unknown; fields?: unknown } =
    Object(result);
  return Array.isArray(fields) && writes.has(command) ? Number(rowCount ?? 0) : undefined;
}
