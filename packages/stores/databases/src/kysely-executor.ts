import type { SqlValue } from "@countersign/idempotency";
import type { Row } from "@countersign/idempotency/store";
import { driverValues, onSqlite, type Dialect } from "./driver-connection.ts";
import { compound, compoundRows, rowsOf } from "./rows.ts";

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
  withoutPlugins(): { executeQuery(query: KyselyQuery): Promise<{ readonly rows: readonly unknown[] }> };
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
  const query = compiled(text, driverValues(dialect, values));
  return rowsOf("Kysely", await executor.withoutPlugins().executeQuery(query));
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
