/** Where the tables are, as `createPostgresStores`, `migratePostgres` and `postgresMigration` take it. */
export interface PostgresTables {
  /** Schema of the tables. Default `public`. */
  readonly schema?: string | undefined;
  /** Prefix of the tables' names. Default `countersign`. */
  readonly table?: string | undefined;
}

/** The quoted names. */
export interface TableNames {
  readonly schema: string;
  readonly idempotency: string;
  readonly nonces: string;
  readonly version: string;
  /** Of version 1: see the migration. */
  readonly sequence: string;
}

/** The tables' schema and prefix, checked. Throws a TypeError that names the option. */
export function resolveTables(
  factory: string,
  { schema = "public", table = "countersign" }: PostgresTables,
): Required<{ readonly [Option in keyof PostgresTables]: string }> {
  assertName(factory, "schema", schema, longestName);
  assertName(factory, "table", table, longestPrefix);
  return { schema, table };
}

/** Every name is qualified, so that no search_path and no temporary table can put another one in its place. */
export function tableNames({
  schema,
  table,
}: {
  readonly schema: string;
  readonly table: string;
}): TableNames {
  const qualified = (suffix: string): string =>
    `${quoteIdentifier(schema)}.${quoteIdentifier(table + suffix)}`;
  return {
    schema: quoteIdentifier(schema),
    idempotency: qualified("_idempotency"),
    nonces: qualified("_nonces"),
    version: qualified("_schema"),
    sequence: qualified("_fences"),
  };
}

/** In double quotes; for names that {@link resolveTables} has passed. */
export function quoteIdentifier(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

/** In single quotes; for text without backslashes, which old settings of the server read as escapes. */
export function quoteLiteral(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

// PostgreSQL cuts longer names silently, and two prefixes would share one table. The longest suffix is `_idempotency_open`.
const longestName = 63;
const longestPrefix = 40;

// A backslash or a dollar sign could end a literal, a control character no name needs, and a lone surrogate would be sent as another
// letter.
const unsafeInName = /[\\$\p{Cc}\p{Surrogate}]/u;

function assertName(factory: string, option: string, name: unknown, longest: number): asserts name is string {
  if (
    typeof name !== "string" ||
    name === "" ||
    Buffer.byteLength(name) > longest ||
    unsafeInName.test(name)
  ) {
    throw new TypeError(
      `${factory}: option ${option} must be 1 to ${longest} bytes of UTF-8 without backslashes, dollar signs and control characters`,
    );
  }
}
