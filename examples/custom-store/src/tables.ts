import type { Connection } from "mysql2/promise";

/** The quoted names of the tables. */
export interface TableNames {
  readonly keys: string;
  readonly floor: string;
  readonly nonces: string;
}

/** Throws a TypeError on a prefix that would need more than quoting. */
export function tableNames(prefix: string): TableNames {
  if (!/^[a-z]\w{0,39}$/i.test(prefix)) {
    throw new TypeError("prefix must be a letter and up to 39 more letters, digits and underscores");
  }
  const named = (suffix: string): string => `\`${prefix}_${suffix}\``;
  return { keys: named("keys"), floor: named("floor"), nonces: named("nonces") };
}

// #region tables
/** An operator's last decision, null without one: done or released, about which fence, when, by whom, why, for what it was held. */
const decisionColumns = [
  "decision ENUM('done', 'released')",
  "decision_fence BIGINT",
  "decision_us BIGINT",
  "decision_by VARBINARY(768)",
  "decision_note VARBINARY(3072)",
  "decision_reason VARBINARY(3072)",
  "reopened_us BIGINT",
  "reopened_by VARBINARY(768)",
  "reopened_note VARBINARY(3072)",
];

/**
 * Creates what is missing of the tables. All texts are bytes: each character collation of MariaDB makes one key of two, by case, by
 * accent, or, as utf8mb4_bin does, by the blanks at the end. All instants are microseconds since 1970: a DATETIME has a time zone in
 * the mind of its reader, and an hour that comes twice in autumn.
 */
export async function createTables(connection: Pick<Connection, "query">, prefix: string): Promise<void> {
  const { keys, floor, nonces } = tableNames(prefix);
  await connection.query(`CREATE TABLE IF NOT EXISTS ${keys} (
  -- SHA-256 of the key: 512 characters can need more bytes than fit into an index beside anything else
  id BINARY(32) PRIMARY KEY,
  name VARBINARY(3072) NOT NULL,
  -- free: absent to everybody who reads, kept for its fence
  state ENUM('free', 'run', 'held', 'done') NOT NULL,
  token VARBINARY(3072) NOT NULL,
  fence BIGINT NOT NULL,
  fingerprint VARBINARY(3072) NOT NULL,
  reason VARBINARY(3072) NOT NULL,
  -- end of the lease (run, held), of the retention (done); of a free key, when it became free, or of what was decided about it
  until_us BIGINT NOT NULL,
  ${decisionColumns.join(",\n  ")},
  KEY pages (state, id),
  KEY pruning (state, until_us)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC`);
  // Of a table that an earlier release has made.
  const added = decisionColumns.map((column) => `ADD COLUMN IF NOT EXISTS ${column}`).join(", ");
  await connection.query(`ALTER TABLE ${keys} ${added}`);
  await connection.query(`CREATE TABLE IF NOT EXISTS ${floor} (
  one TINYINT PRIMARY KEY CHECK (one = 1),
  -- the highest fence of a pruned key
  fence BIGINT NOT NULL
) ENGINE = InnoDB`);
  await connection.query(`INSERT IGNORE INTO ${floor} (one, fence) VALUES (1, 0)`);
  await connection.query(`CREATE TABLE IF NOT EXISTS ${nonces} (
  digest BINARY(32) PRIMARY KEY,
  token VARBINARY(3072) NOT NULL,
  until_us BIGINT NOT NULL,
  KEY pruning (until_us)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC`);
}
// #endregion tables
