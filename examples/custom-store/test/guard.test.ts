// The store behind the guard, as a platform uses it.
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { guardErrors } from "@countersign/express";
import { createMariadbStores, createTables, withTransaction } from "@countersign/example-custom-store";
import { idempotencyGuard } from "@countersign/idempotency-guard";
import { rawBody } from "@countersign/raw-body";
import { afterEach, beforeEach, expect, test } from "@jest/globals";
import express from "express";
import { createPool, type Pool, type PoolConnection } from "mysql2/promise";
import { describeOnMariadb, mariadbUrl } from "./server/mariadb.ts";
import { dropTables, newPrefix } from "./tables.ts";

const uri = mariadbUrl ?? "";
const closing: (() => unknown)[] = [];

afterEach(async () => {
  while (closing.length > 0) await closing.pop()?.();
});

describeOnMariadb("a payout whose key is in MariaDB", () => {
  let pool: Pool;
  let prefix: string;

  beforeEach(async () => {
    prefix = newPrefix();
    pool = createPool({ uri });
    await createTables(pool, prefix);
    await pool.query(`CREATE TABLE ${prefix}_payouts (idempotency_key VARBINARY(512) NOT NULL)`);
    closing.push(async () => {
      await dropTables(pool, prefix);
      await pool.query(`DROP TABLE ${prefix}_payouts`);
      await pool.end();
    });
  });

  /** `fault` comes between the payment and the commit. Gives what sends a payout and tells its status. */
  async function serve(fault: (connection: PoolConnection) => unknown = () => {}) {
    const stores = createMariadbStores({ uri, prefix, pruneIntervalMs: 0 });
    const key = (req: { headers: NodeJS.Dict<string | string[]> }) => req.headers["idempotency-key"];
    const guard = idempotencyGuard({ store: stores.idempotency, key, recovery: "rerun" });
    const app = express();
    const acceptPayout: express.RequestHandler = async (req, res) => {
      await withTransaction(pool, async (connection) => {
        await req.idempotency?.completeIn(connection);
        await pay(connection);
        await fault(connection);
      });
      res.json({ status: "acknowledged" });
    };
    // oxlint-disable-next-line oxc/no-async-endpoint-handlers -- Express 5 hands rejections on
    app.post("/payouts", rawBody(), guard, acceptPayout);
    app.use(guardErrors());
    app.use((_error: unknown, _req: express.Request, res: express.Response, _next: express.NextFunction) => {
      res.sendStatus(500);
    });
    const server = createServer(app).listen(0, "127.0.0.1");
    await once(server, "listening");
    closing.push(async () => {
      server.close();
      server.closeAllConnections();
      await stores.close();
    });
    const { port } = server.address() as AddressInfo;
    return async (): Promise<number> => {
      const headers = { "Idempotency-Key": "payout-7" };
      const init = { method: "POST", headers, body: "{}" };
      return (await fetch(`http://127.0.0.1:${port}/payouts`, init)).status;
    };
  }

  async function pay(connection: PoolConnection): Promise<void> {
    await connection.execute(`INSERT INTO ${prefix}_payouts VALUES (?)`, ["payout-7"]);
  }

  async function payouts(): Promise<number> {
    const [rows] = await pool.query(`SELECT * FROM ${prefix}_payouts`);
    return (rows as unknown[]).length;
  }

  test("is paid once by two platforms that get it five times each", async () => {
    const [one, other] = [await serve(), await serve()];
    const statuses = await Promise.all([one, other].flatMap((send) => Array.from({ length: 5 }, send)));
    expect(statuses.filter((status) => status === 200)).toHaveLength(1);
    expect(statuses.filter((status) => status !== 200 && status !== 409)).toEqual([]);
    expect(await payouts()).toBe(1);
  });

  test("that fails is undone with its key, and its retry pays", async () => {
    let attempts = 0;
    const send = await serve(() => {
      attempts += 1;
      if (attempts === 1) throw new Error("no such account");
    });
    expect(await send()).toBe(500);
    expect(await payouts()).toBe(0);
    expect(await send()).toBe(200);
    expect(await send()).toBe(409);
    expect(await payouts()).toBe(1);
  });

  test("whose handler goes on after the server has rolled back is not paid, and its retry pays", async () => {
    let attempts = 0;
    const send = await serve(async (connection) => {
      attempts += 1;
      if (attempts > 1) return;
      // As after a deadlock whose error the handler kept to itself.
      await connection.query("ROLLBACK");
      await pay(connection);
    });
    expect(await send()).toBe(500);
    expect(await payouts()).toBe(0);
    expect(await send()).toBe(200);
    expect(await payouts()).toBe(1);
  });
});
