// The databases of the soaks: their tables, the stores on them, and what was written there.
import { randomBytes } from "node:crypto";
import path from "node:path";
import { createStores, migrate } from "@countersign/store-sql";
import Database from "libsql";

/**
 * `prepare({ folder, url }, tables)` makes empty tables and returns their location, as JSON; `open(location, connections)` gives the
 * library's `database`, the `stores` with transactions on it, `write(tx, table, row)`, `read(table, rest)` and `close()`; `writeOnce` leaves
 * a row that is there, and without `tx` commits by itself. `remove` takes all away. Of a table the columns are named; `place` counts its rows.
 */
export const databases = {
  sqlite: {
    needs: undefined,
    async prepare({ folder }, tables) {
      const location = { file: path.join(folder, "platform.db") };
      const { database, close } = await databases.sqlite.open(location);
      const place = "place INTEGER PRIMARY KEY AUTOINCREMENT";
      for (const statement of statementsOf(tables, (table) => table, place)) database.exec(statement);
      await close();
      return location;
    },
    async open({ file }) {
      const database = new Database(file);
      database.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA busy_timeout = 5000");
      const stores = createStores({ database });
      const known = new Map();
      const prepared = (text) => known.get(text) ?? known.set(text, database.prepare(text)).get(text);
      return {
        database,
        stores,
        write: (_tx, table, row) => void prepared(insertOf(table, row)).run(...Object.values(row)),
        writeOnce: (_tx, table, row) =>
          void prepared(`${insertOf(table, row)} ${orNothing}`).run(...Object.values(row)),
        read: async (table, rest = "", values = []) =>
          prepared(`SELECT * FROM ${table} ${rest}`).all(...values),
        async close() {
          stores.close();
          database.close();
        },
      };
    },
    // With its folder.
    async remove() {},
  },
  postgres: {
    needs: "DATABASE_URL",
    async prepare({ url }, tables) {
      const location = { url, schema: isolatedName() };
      const { pool, nameOf, close } = await databases.postgres.open(location, 1);
      await pool.query(`CREATE SCHEMA "${location.schema}"`);
      await migrate(pool, { schema: location.schema });
      for (const statement of statementsOf(tables, nameOf, "place bigserial PRIMARY KEY"))
        await pool.query(statement);
      await close();
      return location;
    },
    async open({ url, schema }, max) {
      const { default: pg } = await import("pg");
      const { fromPg } = await import("@countersign/store-sql/pg");
      const pool = new pg.Pool({ connectionString: url, max }).on("error", () => {});
      const database = fromPg(pool);
      const stores = createStores({ database, schema });
      const nameOf = (table) => `"${schema}".${table}`;
      const send = async (on, text, values) => (await on.query(numbered(text), values)).rows;
      const once = (insert) => `${insert} ${orNothing}`;
      return onPool({ pool, database, stores, nameOf, once, keys: "countersign_idempotency" }, send);
    },
    async remove({ schema }, { pool }) {
      await pool.query(`DROP SCHEMA "${schema}" CASCADE`);
    },
  },
  mariadb: {
    needs: "MYSQL_URL",
    async prepare({ url }, tables) {
      const location = { url, table: isolatedName() };
      const { pool, database, nameOf, close } = await databases.mariadb.open(location, 1);
      await migrate(database, { table: location.table });
      for (const statement of statementsOf(tables, nameOf, "place BIGINT AUTO_INCREMENT PRIMARY KEY"))
        await pool.query(statement);
      await close();
      return location;
    },
    /** `session`: a statement that each new connection gets. */
    async open({ url, table: prefix, session }, connectionLimit) {
      const { createPool } = await import("mysql2/promise");
      const { fromMysql2 } = await import("@countersign/store-sql/mysql2");
      const pool = createPool({ uri: url, connectionLimit });
      if (session !== undefined) pool.on("connection", (connection) => void connection.query(session));
      const database = fromMysql2(pool);
      const stores = createStores({ database, table: prefix });
      const nameOf = (table) => `${prefix}_${table}`;
      const send = async (on, text, values) => (await on.query(text, values))[0];
      const once = (insert) => insert.replace("INSERT", "INSERT IGNORE");
      return onPool({ pool, database, stores, nameOf, once, keys: "idempotency" }, send);
    },
    async remove({ table }, { pool }) {
      const [names] = await pool.query(`SHOW TABLES LIKE '${table}\\_%'`);
      for (const row of names) await pool.query(`DROP TABLE ${Object.values(row)[0]}`);
    },
  },
};

/** `send(on, text, values)` gives rows; `?` stands for each value. */
function onPool({ pool, database, stores, nameOf, once, keys }, send) {
  return {
    /** The table of keys, as read() takes it. */
    keys,
    pool,
    database,
    stores,
    nameOf,
    write: (tx, table, row) => send(tx, insertOf(nameOf(table), row), Object.values(row)),
    writeOnce: (tx, table, row) => send(tx ?? pool, once(insertOf(nameOf(table), row)), Object.values(row)),
    read: (table, rest = "", values = []) => send(pool, `SELECT * FROM ${nameOf(table)} ${rest}`, values),
    async close() {
      stores.close();
      await pool.end();
    },
  };
}

function statementsOf(tables, nameOf, place) {
  return Object.entries(tables).flatMap(([table, { columns, index }]) => [
    `CREATE TABLE ${nameOf(table)} (${columns.replace("place", place)})`,
    ...(index === undefined ? [] : [`CREATE INDEX ${table}_${index} ON ${nameOf(table)} (${index})`]),
  ]);
}

const orNothing = "ON CONFLICT DO NOTHING";

function insertOf(table, row) {
  const columns = Object.keys(row);
  return `INSERT INTO ${table} (${columns.join(", ")}) VALUES (${columns.map(() => "?").join(", ")})`;
}

function numbered(text) {
  let count = 0;
  return text.replaceAll("?", () => `$${(count += 1)}`);
}

export function isolatedName() {
  return `cs_soak_${randomBytes(6).toString("hex")}`;
}
