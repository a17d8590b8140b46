import type { SqlValue } from "@countersign/idempotency";
import { fromPostgresJs } from "@countersign/store-sql/postgres-js";
import type Pg from "pg";
import type Postgres from "postgres";
import { CommandError, exitCodes } from "../command-io.ts";
import { loadAnyDriver } from "../load-package.ts";
import type { SqlConnection } from "./sql-engine.ts";
import { goodbyeMs, openTimeoutMs, withinTime } from "./store-failure.ts";
import { refusingUrl, type StoreLocation } from "./store-target.ts";

/** One connection to PostgreSQL, as the stores ask it. */
export interface PostgresSession {
  query(
    text: string,
    values?: SqlValue[],
  ): Promise<{ readonly rows: readonly Readonly<Record<string, unknown>>[] }>;
}

type Connecting = (location: StoreLocation, timeoutMs: number) => Promise<SqlConnection<PostgresSession>>;

/** Connects by the driver that is installed: pg, else postgres.js. `timeoutMs` is for each statement; 0 for no limit. */
export async function connectPostgres(
  location: StoreLocation,
  timeoutMs: number,
): Promise<SqlConnection<PostgresSession>> {
  const connect = await loadAnyDriver<Connecting>([
    { name: "pg", load: async () => byPg((await import("pg")).default) },
    { name: "postgres", load: async () => byPostgresJs((await import("postgres")).default) },
  ]);
  return connect(location, timeoutMs);
}

function byPg(pg: typeof Pg): Connecting {
  return async (location, timeoutMs) => {
    const config = {
      connectionString: location.address,
      connectionTimeoutMillis: openTimeoutMs,
      application_name: "countersign",
      // Set on the client: a pooler before the server refuses session settings.
      query_timeout: timeoutMs,
    };
    const client = refusingUrl(location, () => new pg.Client(config));
    // A broken connection fails the running or next query; without a listener it would end the process.
    client.on("error", () => {});
    await client.connect();
    return connectionOf(client, async () => {
      await withinTime(goodbyeMs, client.end(), (why) => new Error(why)).catch(() => {});
      // Missing in the types of pg. The process ends without a server that hangs.
      const { unref }: { readonly unref?: unknown } = client as object;
      if (typeof unref === "function") Reflect.apply(unref, client, []);
    });
  };
}

function byPostgresJs(postgres: typeof Postgres): Connecting {
  return async (location, timeoutMs) => {
    const config = {
      max: 1,
      connect_timeout: openTimeoutMs / 1000,
      // A pooler before the server has no statements by name.
      prepare: false,
      connection: { application_name: "countersign" },
      // Its default writes notices of the server to stdout.
      onnotice: () => {},
    };
    const sql = refusingUrl(location, () => postgres(location.address, config));
    const database = fromPostgresJs(sql);
    const late = (why: string): Error =>
      new CommandError(`${location.shown} cannot be reached: ${why}`, exitCodes.unreachable);
    const session: PostgresSession = {
      async query(text, values = []) {
        const answered = database.alone(text, values);
        return { rows: await (timeoutMs === 0 ? answered : withinTime(timeoutMs, answered, late)) };
      },
    };
    return connectionOf(session, () => sql.end({ timeout: goodbyeMs / 1000 }));
  };
}

function connectionOf(session: PostgresSession, close: () => Promise<void>): SqlConnection<PostgresSession> {
  return {
    connection: session,
    query: async (text, values) => (await session.query(text, [...values])).rows,
    close,
  };
}
