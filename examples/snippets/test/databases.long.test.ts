// The code of the page of databases, run on real libraries: a payout and its row commit together, once.
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import {
  buildPayoutRequest,
  createPayoutInstruction,
  sampleBusiness,
  sendPayout,
} from "@countersign/devtools/sandbox";
import { fromMysql2 } from "@countersign/store-sql/mysql2";
import { migrate } from "@countersign/store-sql";
import { signPayloadHeaders } from "@countersign/webhook-hmac";
import { afterAll, beforeAll, describe, expect, jest, test } from "@jest/globals";
import { MikroORM } from "@mikro-orm/postgresql";
import express, { type Express } from "express";
import knex from "knex";
import Database from "libsql";
import { Client, Pool } from "pg";
import { createConnection, createPool } from "mysql2/promise";
import postgres from "postgres";
import { DataTypes, Sequelize } from "sequelize";
import { DataSource } from "typeorm";
import { payouts as ofDrizzleOnSqlite } from "../dist/databases/drizzle-sqlite.js";
import { openDatabase as openDrizzle, start as ofDrizzle } from "../dist/databases/drizzle.js";
import { start as ofKnex } from "../dist/databases/knex.js";
import { openDatabase as openKysely, start as ofKysely } from "../dist/databases/kysely.js";
import {
  Business as mikroOrmBusiness,
  Payment as mikroOrmPayment,
  start as ofMikroOrm,
} from "../dist/databases/mikro-orm.js";
import { start as ofMysql2 } from "../dist/databases/mysql2.js";
import { openPool, start as ofPg } from "../dist/databases/pg.js";
import { start as ofPostgresJs } from "../dist/databases/postgres-js.js";
import { start as ofPrisma } from "../dist/databases/prisma.js";
import { config } from "../dist/databases/prisma-config.js";
import { start as ofSequelize } from "../dist/databases/sequelize.js";
import { start as ofSqlite } from "../dist/databases/sqlite.js";
import {
  Business as typeOrmBusiness,
  Payment as typeOrmPayment,
  start as ofTypeOrm,
} from "../dist/databases/typeorm.js";
import {
  describeOnMysql,
  describeOnPostgres,
  isolatedName,
  mysqlUrl,
  postgresUrl,
} from "@countersign/test-support/servers/engines.ts";
import { afterTest } from "@countersign/test-support/runs/after-test.ts";
import { served } from "@countersign/test-support/servers/served.ts";
import { serviceKey } from "@countersign/test-support/signers/test-keys.ts";
import { createApp as createWebhooks } from "../dist/guide/webhooks-on-postgres.js";
import { openPrisma } from "./prisma/client.ts";

// Drizzle takes the connection that it is given, and imports the driver for its own: libsql has the same functions.
jest.unstable_mockModule("better-sqlite3", () => ({ default: Database }), { virtual: true });
const { drizzle: drizzleOnSqlite } = await import("drizzle-orm/better-sqlite3");

const mysqlServer = mysqlUrl ?? "mysql://nowhere";
const server = postgresUrl ?? "postgres://nowhere";
const name = isolatedName("docs");
const url = Object.assign(new URL(server), { pathname: `/${name}` }).href;
const privateKey = serviceKey.export({ type: "pkcs8", format: "pem" }).toString();
const known = sampleBusiness;
const tables = `
  CREATE TABLE payments (key text PRIMARY KEY, iban text NOT NULL);
  CREATE TABLE businesses (id text, iban text, PRIMARY KEY (id, iban));
  INSERT INTO businesses VALUES ('${known.businessId}', '${known.iban}')`;

async function administer(text: string): Promise<void> {
  const client = new Client({ connectionString: server });
  await client.connect();
  await client.query(text);
  await client.end();
}

/** What a page's `start` does: mounts the endpoint, listens, and gives what ends server, stores and library. */
type Start = (app: Express) => Promise<() => Promise<void>>;

const libraries: Readonly<Record<string, () => Start | Promise<Start>>> = {
  pg: () => (app) => ofPg(app, openPool(url)),
  Drizzle: () => (app) => ofDrizzle(app, openDrizzle(url)),
  Kysely: () => (app) => ofKysely(app, openKysely(url)),
  Knex: () => (app) => ofKnex(app, knex({ client: "pg", connection: url })),
  async TypeORM() {
    const entities = [typeOrmPayment, typeOrmBusiness];
    const dataSource = new DataSource({ type: "postgres", url, entities });
    await dataSource.initialize();
    return (app) => ofTypeOrm(app, dataSource);
  },
  Sequelize() {
    const sequelize = new Sequelize(url, { logging: false });
    const modelOf = (tableName: string, primary: string) => {
      const columns = { [primary]: { type: DataTypes.TEXT, primaryKey: true }, iban: DataTypes.TEXT };
      return sequelize.define(tableName, columns, { tableName, timestamps: false });
    };
    const Payment = modelOf("payments", "key");
    const Business = modelOf("businesses", "id");
    return (app) => ofSequelize(app, sequelize, { Payment, Business });
  },
  async Prisma() {
    const { prisma, end } = await openPrisma(url);
    return async (app) => {
      const close = await ofPrisma(app, prisma);
      return () => close().then(end);
    };
  },
  async MikroORM() {
    const entities = [mikroOrmPayment, mikroOrmBusiness];
    const orm = await MikroORM.init({ clientUrl: url, entities });
    return (app) => ofMikroOrm(app, orm);
  },
  "postgres.js": () => (app) => ofPostgresJs(app, postgres(url, { onnotice: () => {} })),
};

/** Sends a payout twice, one whose row is there already, and one to somebody unknown; each signed anew. */
async function statusesOf(start: Start, key: string): Promise<readonly number[]> {
  const app = express().set("trust proxy", "loopback");
  const listen = app.listen.bind(app);
  let listening: Server | undefined;
  app.listen = () => (listening = listen(0, "127.0.0.1"));
  const end = await start(app);
  app.use(
    ((error: { status?: number }, _req, res, _next) =>
      void res.sendStatus(error.status ?? 500)) as express.ErrorRequestHandler,
  );
  if (listening === undefined) throw new Error("the page's server does not listen");
  if (!listening.listening) await once(listening, "listening");
  const { port } = listening.address() as AddressInfo;
  const send = async (idempotencyKey: string, businessId?: string): Promise<number> => {
    const request = buildPayoutRequest({
      url: `http://127.0.0.1:${port}/api/v1/transaction`,
      body: createPayoutInstruction({ idempotencyKey, businessId }),
      keyid: "test-key-ed25519",
      privateKey,
    });
    const headers = { ...request.headers, "X-Forwarded-For": "192.0.2.10" };
    return (await sendPayout({ ...request, headers })).status;
  };
  try {
    return [
      await send(key),
      await send(key),
      await send(`taken.${key}`),
      await send(`stranger.${key}`, "business-2"),
    ];
  } finally {
    listening.closeAllConnections();
    await end();
  }
}

describeOnPostgres("on PostgreSQL", () => {
  beforeAll(async () => {
    await administer(`CREATE DATABASE ${name}`);
    const pool = new Pool({ connectionString: url });
    await migrate(pool);
    await pool.query(tables);
    await pool.end();
  });

  afterAll(() => administer(`DROP DATABASE ${name} WITH (FORCE)`));

  test.each(Object.entries(libraries))(
    "%s: a payout is paid once, and one that fails is not",
    async (library, open) => {
      const key = `${library}.funding-1.business-1`;
      const admin = new Client({ connectionString: url });
      await admin.connect();
      afterTest(() => admin.end());
      await admin.query("INSERT INTO payments VALUES ($1, '')", [`taken.${key}`]);
      expect(await statusesOf(await open(), key)).toEqual([200, 409, 500, 400]);
      const { rows } = await admin.query(
        "SELECT iban <> '' AS paid FROM payments WHERE key LIKE $1 ORDER BY iban",
        [`%${key}`],
      );
      expect(rows.map(({ paid }) => paid as boolean)).toEqual([false, true]);
    },
  );

  test("a webhook: each delivery is written once, and a forged one never", async () => {
    const pool = new Pool({ connectionString: url });
    await pool.query("CREATE TABLE deliveries (id text PRIMARY KEY, body jsonb)");
    afterTest(() => pool.end());
    const origin = await served(createWebhooks(pool, ["test-secret"]));
    const send = async (secret: string): Promise<number> => {
      const body = '{"action":"opened"}';
      const signed = signPayloadHeaders(Buffer.from(body), secret, { scheme: "github" });
      const headers = { "Content-Type": "application/json", "X-GitHub-Delivery": "72d3162e", ...signed };
      return (await fetch(`${origin}/webhooks/github`, { method: "POST", headers, body })).status;
    };
    expect([await send("other"), await send("test-secret"), await send("test-secret")]).toEqual([
      401, 200, 200,
    ]);
    const { rows } = await pool.query("SELECT * FROM deliveries");
    expect(rows).toEqual([{ id: "72d3162e", body: { action: "opened" } }]);
    expect(pool.listenerCount("error")).toBeGreaterThan(0);
  });

  test("a start before the migration says what is missing, and does not listen", async () => {
    const own = `${name}_bare`;
    await administer(`CREATE DATABASE ${own}`);
    const bare = new Pool({ connectionString: Object.assign(new URL(server), { pathname: `/${own}` }).href });
    const app = express();
    app.listen = () => {
      throw new Error("it listens");
    };
    afterTest(async () => {
      await bare.end();
      await administer(`DROP DATABASE ${own} WITH (FORCE)`);
    });
    await expect(ofPg(app, bare)).rejects.toThrow(/countersign migrate/);
  });

  describe("migration tools leave the tables alone, by the filters of the page", () => {
    const own = `${name}_tools`;
    const toolsUrl = Object.assign(new URL(server), { pathname: `/${own}` }).href;
    const pool = new Pool({ connectionString: toolsUrl, max: 1 });
    const made =
      "SELECT oid, relname FROM pg_class WHERE relnamespace = 'countersign'::regnamespace ORDER BY 1";
    beforeAll(async () => {
      await administer(`CREATE DATABASE ${own}`);
      await migrate(pool);
    });
    afterAll(async () => {
      await pool.end();
      await administer(`DROP DATABASE ${own} WITH (FORCE)`);
    });

    test.each<[string, () => Promise<unknown>]>([
      [
        "TypeORM's dropSchema and synchronize",
        async () => {
          const options = { dropSchema: true, synchronize: true, entities: [typeOrmPayment] };
          await (
            await new DataSource({ type: "postgres", url: toolsUrl, ...options }).initialize()
          ).destroy();
        },
      ],
      [
        "Sequelize's sync and drop",
        async () => {
          const sequelize = new Sequelize(toolsUrl, { logging: false });
          sequelize.define("Payment", { key: { type: DataTypes.TEXT, primaryKey: true } });
          await sequelize.sync({ force: true });
          await sequelize.drop();
          await sequelize.close();
        },
      ],
      [
        "MikroORM's schema:update",
        async () => {
          const page = readFileSync(
            new URL("../../../site/pages/guide/databases/mikro-orm.md", import.meta.url),
            "utf8",
          );
          expect(page).toContain('`schemaGenerator: { ignoreSchema: ["countersign"] }`');
          const updated = async (schemaGenerator: { ignoreSchema?: string[] }) => {
            const options = { clientUrl: toolsUrl, entities: [mikroOrmPayment], schemaGenerator };
            const orm = await MikroORM.init(options);
            const sql = await orm.schema.getUpdateSchemaSQL();
            await orm.close();
            return sql;
          };
          expect(await updated({ ignoreSchema: ["countersign"] })).not.toContain("drop");
          // Else the page needs no filter.
          expect(await updated({})).toContain('drop schema if exists "countersign"');
        },
      ],
    ])("%s", async (_tool, run) => {
      const { rows } = await pool.query(made);
      await run();
      expect((await pool.query(made)).rows).toEqual(rows);
      expect(rows).not.toEqual([]);
    });

    // Its tool would download an engine.
    test("Prisma's filter names every table", async () => {
      const { rows } = await pool.query<{ tablename: string }>(
        "SELECT tablename FROM pg_tables WHERE schemaname = 'countersign'",
      );
      const named = rows.map(({ tablename }) => `public.${tablename}`);
      expect(new Set(config.tables.external)).toEqual(new Set(named));
    });
  });
});

test.each<[string, (app: Express, database: Database.Database) => ReturnType<Start>]>([
  ["libsql", ofSqlite],
  [
    "Drizzle",
    async (app, database) => {
      app.post("/api/v1/transaction", ofDrizzleOnSqlite(drizzleOnSqlite(database)));
      const listening = app.listen();
      return async () => void listening.close(() => database.close());
    },
  ],
])("SQLite by %s: a payout is paid once, and one that fails is not", async (_library, startOn) => {
  const database = new Database(":memory:");
  const key = "payout-1.funding-1.business-1";
  database.exec(tables);
  database.prepare("INSERT INTO payments VALUES (?, '')").run(`taken.${key}`);
  let paid: unknown;
  const start: Start = async (app) => {
    const end = await startOn(app, database);
    return () => {
      paid = database.prepare("SELECT key FROM payments WHERE iban <> ''").all();
      return end();
    };
  };
  expect(await statusesOf(start, key)).toEqual([200, 409, 500, 400]);
  expect(paid).toEqual([{ key }]);
});

describeOnMysql("on MariaDB", () => {
  test("mysql2: a payout is paid once, and one that fails is not", async () => {
    const admin = await createConnection(mysqlServer);
    await admin.query(`CREATE DATABASE ${name}`);
    const own = Object.assign(new URL(mysqlServer), { pathname: `/${name}` }).href;
    const pool = createPool(own);
    afterTest(async () => {
      await pool.end();
      await admin.query(`DROP DATABASE ${name}`);
      await admin.end();
    });
    const key = "payout-1.funding-1.business-1";
    await migrate(fromMysql2(pool));
    await pool.query("CREATE TABLE payments (id VARCHAR(256) PRIMARY KEY, iban TEXT NOT NULL)");
    await pool.query("INSERT INTO payments VALUES (?, '')", [`taken.${key}`]);
    await pool.query("CREATE TABLE businesses (id VARCHAR(256) PRIMARY KEY, iban TEXT)");
    await pool.query("INSERT INTO businesses VALUES (?, ?)", [known.businessId, known.iban]);
    expect(await statusesOf((app) => ofMysql2(app, createPool(own)), key)).toEqual([200, 409, 500, 400]);
    const [rows] = await pool.query("SELECT id FROM payments WHERE iban <> ''");
    expect(rows).toEqual([{ id: key }]);
  });
});

test("the pages of the libraries show the files that are tested here", () => {
  const own = readFileSync(new URL(import.meta.url), "utf8");
  const pages = new URL("../../../site/pages/guide/databases/", import.meta.url);
  for (const page of readdirSync(pages)) {
    const text = readFileSync(new URL(page, pages), "utf8");
    const shown = [...text.matchAll(/file=examples\/snippets\/src\/databases\/([\w-]+)\.ts/g)].map(
      ([, file]) => file,
    );
    const tested = shown.filter((file) => own.includes(`"../dist/databases/${file}.js"`));
    expect({ page, tested }).toEqual({ page, tested: shown.filter((file) => file !== "service") });
    expect(tested).not.toEqual([]);
  }
});
