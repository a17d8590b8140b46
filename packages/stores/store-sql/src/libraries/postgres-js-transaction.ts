import { readFileSync } from "node:fs";
import { setImmediate } from "node:timers/promises";
import { causedBy } from "@countersign/core/internal";
import type { StatementGate } from "@countersign/idempotency/store";
import { effectOf, refusedEnd } from "./gated-connection.ts";
import { rolledBack } from "./transaction.ts";

export interface PostgresJsSender {
  unsafe(text: string, values?: unknown[]): PromiseLike<unknown>;
  typed(value: unknown, type: number): unknown;
}

export interface PostgresJsTransaction extends PostgresJsSender {
  savepoint(work: (tx: this) => Promise<unknown>): Promise<unknown>;
}

export interface PostgresJsPool<Tx extends PostgresJsTransaction> {
  begin: {
    (work: (tx: Tx) => Promise<void>): Promise<unknown>;
    (options: string, work: (tx: Tx) => Promise<void>): Promise<unknown>;
  };
}

/** A transaction of postgres.js that undoes, and goes on, as the server does. Rejects at once when its connection is lost. */
export async function beginPostgresJs<Tx extends PostgresJsTransaction>(
  sql: PostgresJsPool<Tx>,
  work: (tx: Tx) => Promise<void>,
): Promise<void> {
  const life = new Life();
  try {
    await sql.begin(async (outer) => {
      try {
        await work(guarded(await forgiving(outer), life));
        await commit(outer);
      } finally {
        await life.stillThere();
      }
    });
    life.end(undefined);
  } catch (error) {
    life.end(error);
    throw error;
  }
}

/** How long statements of a transaction may be sent. */
class Life {
  #isOpen = true;
  #cause: unknown;
  readonly #sent = new Set<unknown>();

  /** Statements that wait for a connection which is lost would wait for ever. */
  end(cause: unknown): void {
    this.#isOpen = false;
    this.#cause = cause;
    for (const query of this.#sent) {
      const reject: unknown = Reflect.get(Object(query), "reject");
      // Not one that nobody has awaited: its rejection would end the process.
      const isBegun = Reflect.get(Object(query), "executed") !== false;
      if (isBegun && typeof reject === "function") Reflect.apply(reject, query, [cause ?? this.#ended()]);
    }
  }

  /** Refuses after the end as the library tells of errors, and as quietly where nobody looks: its queries begin when they are awaited. */
  send(query: () => unknown): unknown {
    if (!this.#isOpen) {
      const refused = Promise.reject(this.#ended());
      refused.catch(() => {});
      return refused;
    }
    const sent = query();
    this.#sent.add(sent);
    // Before the work hears of it, whose next statement would go to no socket and end the process. Not by its own then(), which begins it.
    const look = (error: unknown): void => {
      if (isLost(error)) this.end(error);
    };
    if (sent instanceof Promise) void Promise.prototype.then.call(sent, undefined, look);
    return sent;
  }

  /** After a lost connection, COMMIT or ROLLBACK would go to the next transaction on it, or to no socket and end the process. */
  async stillThere(): Promise<void> {
    await setImmediate();
    if (!this.#isOpen) await pending();
  }

  // A lost connection is no mistake of the work's: the caller has to know it.
  #ended(): Error {
    return new Error("the transaction has ended, or has lost its connection", causedBy(this.#cause));
  }
}

/**
 * Commits before postgres.js does, whose own COMMIT then ends an empty transaction. That one is prepared: where a pooler has lost it, the
 * server aborts the transaction, and postgres.js sends it again and takes the ROLLBACK for a COMMIT.
 */
async function commit(outer: PostgresJsSender): Promise<void> {
  const result = await outer.unsafe("COMMIT AND CHAIN");
  if (Reflect.get(Object(result), "command") !== "COMMIT") throw rolledBack("fromPostgresJs");
}

/**
 * A savepoint of postgres.js that never ends. `begin` rolls back for any error that one of its statements had, even one undone by ROLLBACK TO;
 * for errors of an inner scope it does only when that ends.
 */
function forgiving<Tx extends PostgresJsTransaction>(outer: Tx): Promise<Tx> {
  return new Promise((resolve, reject) => {
    const onInner = (inner: Tx): Promise<never> => {
      resolve(inner);
      return pending();
    };
    outer.savepoint(onInner).catch(reject);
  });
}

function isLost(error: unknown): boolean {
  const code: unknown = Reflect.get(Object(error), "code");
  return typeof code === "string" && /^(?:CONNECTION_|ECONN|EPIPE|ETIMEDOUT)/.test(code);
}

/** They make parts of statements, and send nothing. */
const parts: ReadonlySet<string | symbol> = new Set(["typed", "types", "array", "json"]);

/** Refuses statements after the end: postgres.js would send them in another request's transaction on this connection. */
function guarded<Tx extends PostgresJsTransaction>(tx: Tx, life: Life): Tx {
  return new Proxy(tx, {
    apply(target, self, values) {
      if (typeof target !== "function") throw new TypeError("fromPostgresJs: needs postgres.js 3");
      const call = (): unknown => Reflect.apply(target, self, values);
      const isStatement = Reflect.has(Object(values[0]), "raw");
      return isStatement ? life.send(call) : call();
    },
    get(target, name) {
      const member: unknown = Reflect.get(target, name);
      if (typeof member !== "function" || parts.has(name)) return member;
      if (name !== "savepoint")
        return (...values: unknown[]) => life.send(() => Reflect.apply(member, target, values));
      return (...values: unknown[]) => {
        const inner = values.map((value) => (typeof value === "function" ? scopeOf(value, life) : value));
        return life.send(() => rejectable(Promise.resolve(Reflect.apply(member, target, inner))));
      };
    },
  });
}

/**
 * The transaction for a handler, whose statements pass the gate. postgres.js sends a statement when it is awaited, or at once by execute(),
 * forEach(), cursor() and their like, and tells of its end by the promise that it is.
 */
export function gatedBy<Tx extends PostgresJsTransaction>(tx: Tx, gate: StatementGate): Tx {
  return new Proxy(tx, {
    apply(target, self, values) {
      const call = (): unknown => Reflect.apply(Object(target), self, values);
      return Reflect.has(Object(values[0]), "raw") ? gatedQuery(call, gate) : call();
    },
    get(target, name) {
      const member: unknown = Reflect.get(target, name);
      if (typeof member !== "function" || parts.has(name)) return member;
      // It would make PREPARE TRANSACTION of the COMMIT.
      if (name === "prepare") return refusedEnd("fromPostgresJs", name);
      return (...values: unknown[]) => {
        const forbidden = name === "file" ? gate.forbids(fileText(values)) : undefined;
        if (forbidden !== undefined) return gate.refuse(forbidden);
        if (name !== "savepoint") return gatedQuery(() => Reflect.apply(member, target, values), gate);
        const inner = values.map((value) =>
          typeof value === "function"
            ? (scope: Tx): unknown => Reflect.apply(value, undefined, [gatedBy(scope, gate)])
            : value,
        );
        return gate.send(() => Promise.resolve(Reflect.apply(member, target, inner)));
      };
    },
  });
}

const begins: ReadonlySet<string | symbol> = new Set([
  "then",
  "catch",
  "finally",
  "execute",
  "forEach",
  "cursor",
  "describe",
  "handle",
  "readable",
  "writable",
]);

/** The text of a query with those of the queries in it. A helper in it, such as `sql(rows)`, makes names and parameters. */
function textOf(query: object): string | undefined {
  const { strings, args }: { readonly strings?: unknown; readonly args?: unknown } = Object(query);
  if (!Array.isArray(strings)) return undefined;
  const values: readonly unknown[] = Array.isArray(args) ? args : [];
  return strings.reduce<string>(
    (text, part: unknown, index) => `${text}${index === 0 ? "" : partText(values[index - 1])}${String(part)}`,
    "",
  );
}

/** A query is a promise: a value of the handler's with members of these names is none. */
function partText(value: unknown): string {
  if (Array.isArray(value) && value[0] instanceof Promise) return value.map(partText).join(" ");
  return (value instanceof Promise ? textOf(value) : undefined) ?? "$1";
}

/** postgres.js reads the file when it sends it. */
function fileText([path]: readonly unknown[]): string | undefined {
  try {
    return typeof path === "string" ? readFileSync(path, "utf8") : undefined;
  } catch {
    // The library tells what it cannot read.
    return "";
  }
}

/** Counts the statement as sent from the call that makes postgres.js send it; refuses that call once the gate is closed. */
function gatedQuery(call: () => unknown, gate: StatementGate): unknown {
  if (!gate.isOpen) return gate.refuse();
  const query = call();
  if (!(query instanceof Promise)) return query;
  let isBegun = false;
  // Undefined from the moment in which it is sent: a query inside of another one is none, and is a part of its text.
  const refusal = (): Promise<never> | undefined => {
    if (isBegun) return undefined;
    if (!gate.isOpen) return gate.refuse();
    // What has been refused already has no text.
    const text = textOf(query);
    const forbidden = text === undefined ? undefined : gate.forbids(text);
    if (forbidden !== undefined) return gate.refuse(forbidden);
    isBegun = true;
    const answered = gate.begin();
    // Not by its own then(), which would be called here again.
    void Promise.prototype.then.call(
      query,
      (result: unknown) => {
        const { command, count: rowCount }: { command?: unknown; count?: unknown } = Object(result);
        answered(command === "CALL" ? "write" : effectOf(textOf(query), { command, rowCount, fields: [] }));
      },
      () => answered("idle"),
    );
    return undefined;
  };
  const gated: unknown = new Proxy(query, {
    get(target, name): unknown {
      const member: unknown = Reflect.get(target, name, target);
      if (typeof member !== "function") return member;
      return (...values: unknown[]): unknown => {
        const refused = begins.has(name) ? refusal() : undefined;
        if (refused !== undefined) {
          const then: unknown = Reflect.get(refused, name);
          return typeof then === "function" ? Reflect.apply(then, refused, values) : refused;
        }
        const returned: unknown = Reflect.apply(member, target, values);
        // values(), raw() and simple() return the query itself.
        return returned === target ? gated : returned;
      };
    },
  });
  return gated;
}

/** The work of a savepoint, whose ROLLBACK TO goes to no lost connection either. */
function scopeOf(work: Function, life: Life): (tx: PostgresJsTransaction) => Promise<unknown> {
  return async (tx) => {
    try {
      const done: unknown = Reflect.apply(work, undefined, [guarded(tx, life)]);
      return await (Array.isArray(done) ? Promise.all(done) : done);
    } catch (error) {
      await life.stillThere();
      throw error;
    }
  };
}

function rejectable(work: Promise<unknown>): Promise<unknown> {
  let reject: ((reason: unknown) => void) | undefined;
  const lost = new Promise<never>((_resolve, rejectLost) => (reject = rejectLost));
  return Object.assign(Promise.race([work, lost]), { reject });
}

/** A new one each time: what awaits it is kept as long as it is. */
function pending(): Promise<never> {
  return new Promise(() => {});
}
