import type { SqlValue, StatementGate } from "@countersign/idempotency";
import type { Row, StatementEffect } from "@countersign/idempotency/store";
import { driverValues, onSqlite, type Dialect } from "./driver-connection.ts";
import { effectOf } from "./gated-connection.ts";
import { changedRows, compound, compoundRows, rowsOf } from "./rows.ts";

/** What Kysely's `CompiledQuery.raw` makes. */
interface KyselyQuery {
  readonly sql: string;
  readonly parameters: readonly SqlValue[];
  readonly query: {
    readonly kind: "RawNode";
    readonly sqlFragments: readonly string[];
    readonly parameters: readonly never[];
  };
  readonly queryId: { readonly queryId: string };
}

export interface KyselyExecutor {
  readonly isTransaction: boolean;
  withoutPlugins(): KyselySender;
}

/** Whatever takes statements: a `Kysely`, a `Transaction`, or the one of these that passes no gate. */
interface KyselySender {
  executeQuery(query: KyselyQuery): Promise<KyselyResult>;
}

interface KyselyResult {
  readonly rows: readonly unknown[];
  readonly numAffectedRows?: bigint;
}

export interface KyselyInstance extends KyselyExecutor {
  getExecutor(): { readonly adapter: KyselyAdapter };
}

interface KyselyAdapter {
  readonly supportsReturning?: boolean;
  readonly supportsTransactionalDdl?: boolean;
  readonly supportsOutput?: boolean;
}

/** Sends a statement as it is: plugins such as CamelCasePlugin would rename the columns. */
export async function sendByKysely(
  executor: KyselyExecutor,
  dialect: Dialect,
  text: string,
  values: readonly SqlValue[],
): Promise<readonly Row[]> {
  return rowsOf("Kysely", await resultOf(executor, dialect, text, values));
}

/** On MySQL and MariaDB: sends a statement that changes rows. Resolves to how many. */
export async function changeByKysely(
  executor: KyselyExecutor,
  text: string,
  values: readonly SqlValue[],
): Promise<number> {
  const { numAffectedRows } = await resultOf(executor, "mysql", text, values);
  return changedRows("Kysely", numAffectedRows);
}

function resultOf(
  executor: KyselyExecutor,
  dialect: Dialect,
  text: string,
  values: readonly SqlValue[],
): Promise<KyselyResult> {
  const query = compiled(text, driverValues(dialect, values));
  const sender = own.get(executor) ?? executor.withoutPlugins();
  return sender.executeQuery(query);
}

/** The same transactions for the store, whose statements pass no gate. */
const own = new WeakMap<KyselyExecutor, KyselySender>();

const derivations = [
  "withPlugin",
  "withPlugins",
  "withPluginAtFront",
  "withoutPlugins",
  "withConnectionProvider",
] as const;

/** Makes all statements of a transaction pass the gate, also those of what is derived from it. */
export function passThrough(tx: KyselyExecutor, gate: StatementGate): void {
  own.set(tx, tx.withoutPlugins());
  gateTransaction(tx, gate);
}

/** What gives a controlled transaction, such as MikroORM's, another one, whose executor knows nothing of the first one's. */
const nesting = ["savepoint", "rollbackToSavepoint", "releaseSavepoint"] as const;

function gateTransaction(tx: object, gate: StatementGate): void {
  const executor: unknown = Reflect.apply(Object(Reflect.get(tx, "getExecutor")), tx, []);
  gateExecutor(Object(executor), gate);
  for (const name of nesting) {
    const nest: unknown = Reflect.get(tx, name);
    if (typeof nest !== "function") continue;
    Reflect.set(tx, name, (...values: unknown[]) => {
      const command = Object(Reflect.apply(nest, tx, values));
      return {
        async execute(): Promise<unknown> {
          const nested: unknown = await command.execute();
          gateTransaction(Object(nested), gate);
          return nested;
        },
      };
    });
  }
}

/** Kysely's executors send on a connection that `provideConnection` gives them, which they call on themselves. */
function gateExecutor(executor: object, gate: StatementGate): object {
  const provide: unknown = Reflect.get(executor, "provideConnection");
  if (typeof provide !== "function") {
    throw new TypeError(
      "Kysely: the executor of a transaction gives no connection; this release is not supported",
    );
  }
  Reflect.set(
    executor,
    "provideConnection",
    (consumer: (connection: object) => unknown): Promise<unknown> => {
      // A controlled transaction, such as MikroORM's, sends its COMMIT or ROLLBACK here.
      if (gate.isEnding)
        return Reflect.apply(provide, executor, [
          (connection: object) => consumer(endingOnly(connection, gate)),
        ]);
      let effect: StatementEffect;
      const note = (one: StatementEffect): void => {
        if (effect !== "write") effect = one;
      };
      return gate.send(
        () =>
          Reflect.apply(provide, executor, [
            (connection: object) => consumer(observed(connection, gate, note)),
          ]),
        () => effect,
      );
    },
  );
  for (const name of derivations) {
    const derive: unknown = Reflect.get(executor, name);
    if (typeof derive !== "function") continue;
    Reflect.set(executor, name, (...values: unknown[]): object =>
      gateExecutor(Object(Reflect.apply(derive, executor, values)), gate),
    );
  }
  return executor;
}

/** A connection for the statement that ends the transaction alone. */
function endingOnly(connection: object, gate: StatementGate): object {
  return new Proxy(connection, {
    get(target, name): unknown {
      const member: unknown = Reflect.get(target, name, target);
      if (typeof member !== "function") return member;
      return (...values: unknown[]): unknown =>
        name === "executeQuery" && gate.isEnd(Reflect.get(Object(values[0]), "sql"))
          ? Reflect.apply(member, target, values)
          : gate.refuse();
    },
  });
}

/** Refuses what a handler's transaction does not take, and notes what a statement on the connection has changed. */
function observed(connection: object, gate: StatementGate, note: (effect: StatementEffect) => void): object {
  const assertTaken = (query: unknown): void => {
    const sql: unknown = Reflect.get(Object(query), "sql");
    const forbidden = gate.forbids(typeof sql === "string" ? sql : undefined);
    if (forbidden !== undefined) throw forbidden;
  };
  return new Proxy(connection, {
    get(target, name): unknown {
      const member: unknown = Reflect.get(target, name, target);
      if (typeof member !== "function") return member;
      if (name === "streamQuery") {
        return (query: unknown, ...more: unknown[]): unknown => {
          assertTaken(query);
          return Reflect.apply(member, target, [query, ...more]);
        };
      }
      if (name !== "executeQuery") return member.bind(target);
      return async (query: { readonly sql?: unknown }, ...more: unknown[]): Promise<unknown> => {
        assertTaken(query);
        const result: unknown = await Reflect.apply(member, target, [query, ...more]);
        const rows: unknown = Reflect.get(Object(result), "numAffectedRows");
        if (typeof rows === "bigint") note(rows > 0n ? "write" : "idle");
        else note(effectOf(typeof query.sql === "string" ? query.sql : undefined, undefined));
        return result;
      };
    },
  });
}

/** Several statements, on MariaDB alone: on PostgreSQL Kysely drops the rows of all but one. */
export async function sendScriptByKysely(executor: KyselyExecutor, text: string): Promise<readonly Row[]> {
  return compoundRows("Kysely", await sendByKysely(executor, "mysql", compound(text), []));
}

function compiled(sql: string, parameters: readonly SqlValue[]): KyselyQuery {
  return {
    sql,
    parameters,
    query: { kind: "RawNode", sqlFragments: [sql], parameters: [] },
    queryId: { queryId: "countersign" },
  };
}

/** By what the adapters can do: the names of their classes do not outlive a bundler. Throws a TypeError on another engine. */
export function kyselyDialect(caller: string, db: KyselyInstance): Dialect {
  const { supportsReturning, supportsTransactionalDdl, supportsOutput } = db.getExecutor().adapter;
  if (supportsReturning && supportsTransactionalDdl) return "postgresql";
  if (!supportsReturning && !supportsTransactionalDdl && !supportsOutput) return "mysql";
  throw new TypeError(`${caller}: needs PostgreSQL or MySQL; ${onSqlite}`);
}
