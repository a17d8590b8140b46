// The databases of the soak of the inbox and of outcomes: what a platform process writes, and what the judge reads.
import { randomBytes } from "node:crypto";
import path from "node:path";
import { createSqliteStores } from "@countersign/store-sqlite";
import Database from "libsql";

const tables = {
  applied: "place INTEGER PRIMARY KEY AUTOINCREMENT, entity TEXT NOT NULL, number INTEGER NOT NULL",
  settled: "idempotency_key TEXT PRIMARY KEY",
};

/** `open` gives `stores`, `apply(tx, entity, number)`, `settle(tx, key)`; `inspect` what they wrote. */
export const engines = { sqlite: sqlite(), postgres: postgres(), mariadb: mariadb() };

function sqlite() {
  const openFile = ({ file }) => {
    const database = new Database(file);
    database.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA busy_timeout = 5000");
    return database;
  };
  return {
    needs: undefined,
    async prepare({ folder }) {
      const location = { file: path.join(folder, "platform.db") };
      const database = openFile(location);
      for (const [name, columns] of Object.entries(tables))
        database.exec(`CREATE TABLE ${name} (${columns})`);
      createSqliteStores({ database }).close();
      database.close();
      return location;
    },
    async open(location) {
      const database = openFile(location);
      const apply = database.prepare("INSERT INTO applied (entity, number) VALUES (?, ?)");
      const settle = database.prepare("INSERT INTO settled VALUES (?)");
      return {
        stores: createSqliteStores({ database }),
        apply: (_tx, entity, number) => void apply.run(entity, number),
        settle: (_tx, key) => void settle.run(key),
      };
    },
    async inspect(location) {
      const database = openFile(location);
      const { work } = createSqliteStores({ database });
      return {
        work,
        applied: async () => database.prepare("SELECT entity, number FROM applied ORDER BY place").all(),
        settled: async () =>
          database
            .prepare("SELECT idempotency_key AS key FROM settled")
            .all()
            .map(({ key }) => key),
        close: async () => void database.close(),
      };
    },
  };
}

function postgres() {
  return {
    needs: "DATABASE_URL",
    async prepare({ url }) {
      const schema = isolatedName();
      const { migratePostgres } = await import("@countersign/store-postgres");
      const pool = await newPool(url, 1);
      await pool.query(`CREATE SCHEMA "${schema}"`);
      await migratePostgres(pool, { schema });
      await pool.query(
        `CREATE TABLE "${schema}".applied (place bigserial PRIMARY KEY, entity text, number int)`,
      );
      await pool.query(`CREATE TABLE "${schema}".settled (idempotency_key text PRIMARY KEY)`);
      await pool.end();
      return { url, schema };
    },
    async open({ url, schema }) {
      const stores = await postgresStores(await newPool(url, 8), schema);
      return {
        stores,
        apply: (tx, entity, number) =>
          tx.query(`INSERT INTO "${schema}".applied (entity, number) VALUES ($1, $2)`, [entity, number]),
        settle: (tx, key) => tx.query(`INSERT INTO "${schema}".settled VALUES ($1)`, [key]),
      };
    },
    async inspect({ url, schema }) {
      const pool = await newPool(url, 2);
      const { work } = await postgresStores(pool, schema);
      const read = async (text) => (await pool.query(text)).rows;
      return {
        work,
        applied: () => read(`SELECT entity, number FROM "${schema}".applied ORDER BY place`),
        settled: async () =>
          (await read(`SELECT idempotency_key AS key FROM "${schema}".settled`)).map(({ key }) => key),
        async close() {
          await read(`DROP SCHEMA "${schema}" CASCADE`);
          await pool.end();
        },
      };
    },
  };
}

async function postgresStores(pool, schema) {
  const { createPostgresStores } = await import("@countersign/store-postgres");
  const { fromPg } = await import("@countersign/databases");
  return createPostgresStores({ database: fromPg(pool), schema });
}

function mariadb() {
  return {
    needs: "MYSQL_URL",
    async prepare({ url }) {
      const table = isolatedName();
      const { migrateMysql } = await import("@countersign/store-mysql");
      const { fromMysql2 } = await import("@countersign/databases");
      const pool = await mysqlPool(url, 1);
      await migrateMysql(fromMysql2(pool), { table });
      await pool.query(
        `CREATE TABLE ${table}_applied (place BIGINT AUTO_INCREMENT PRIMARY KEY, entity VARCHAR(64), number INT)`,
      );
      await pool.query(`CREATE TABLE ${table}_settled (idempotency_key VARCHAR(128) PRIMARY KEY)`);
      await pool.end();
      return { url, table };
    },
    async open({ url, table }) {
      const stores = await mysqlStores(await mysqlPool(url, 8), table);
      return {
        stores,
        apply: (tx, entity, number) =>
          tx.query(`INSERT INTO ${table}_applied (entity, number) VALUES (?, ?)`, [entity, number]),
        settle: (tx, key) => tx.query(`INSERT INTO ${table}_settled VALUES (?)`, [key]),
      };
    },
    async inspect({ url, table }) {
      const pool = await mysqlPool(url, 2);
      const { work } = await mysqlStores(pool, table);
      const read = async (text) => (await pool.query(text))[0];
      return {
        work,
        applied: () => read(`SELECT entity, number FROM ${table}_applied ORDER BY place`),
        settled: async () =>
          (await read(`SELECT idempotency_key AS k FROM ${table}_settled`)).map(({ k }) => k),
        async close() {
          const names = await read(`SHOW TABLES LIKE '${table}\\_%'`);
          for (const row of names) await read(`DROP TABLE ${Object.values(row)[0]}`);
          await pool.end();
        },
      };
    },
  };
}

async function mysqlStores(pool, table) {
  const { createMysqlStores } = await import("@countersign/store-mysql");
  const { fromMysql2 } = await import("@countersign/databases");
  return createMysqlStores({ database: fromMysql2(pool), table });
}

async function newPool(url, max) {
  const { default: pg } = await import("pg");
  return new pg.Pool({ connectionString: url, max }).on("error", () => {});
}

async function mysqlPool(url, connectionLimit) {
  const { createPool } = await import("mysql2/promise");
  return createPool({ uri: url, connectionLimit });
}

function isolatedName() {
  return `cs_work_${randomBytes(6).toString("hex")}`;
}
