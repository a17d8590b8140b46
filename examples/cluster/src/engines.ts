import { randomBytes } from "node:crypto";
import { DemoStartError } from "@countersign/example-demo";
import {
  type Environment,
  failureOf,
  parsePostgresUrl,
  parseRedisUrl,
  SettingError,
} from "@countersign/example-settings";
import { Client, escapeIdentifier } from "pg";
import { pino } from "pino";
import { createClient } from "redis";
import { connectPool } from "@countersign/example-settings/postgres-pool";
import { connectRedis } from "@countersign/example-settings/redis-connection";

/** A server that was started for this cluster. */
interface StartedServer {
  readonly url: string;
  /** Ends it and removes its data. */
  close(): Promise<void>;
}

/** How to start servers of one's own; undefined where a program is missing. */
export interface ServerStarters {
  readonly postgres: () => Promise<StartedServer | undefined>;
  readonly redis: () => Promise<StartedServer | undefined>;
}

/** Where the platforms of a cluster keep everything. */
export interface ClusterEngines {
  /** Of every platform. */
  readonly env: Environment;
  /** For people: what is used, without a password. */
  readonly description: readonly string[];
  /** Ends what was started, and removes from given servers what the platforms have left there. */
  close(): Promise<void>;
}

/** `redis`: keys and nonces there, the rest in PostgreSQL. `postgres`: everything there. */
export type ClusterStore = "redis" | "postgres";

const docker = "or use Docker: docker compose -f examples/cluster/compose.yaml up --build";

/**
 * Takes the servers of DATABASE_URL and REDIS_URL, with a schema and a key prefix that are this cluster's own, or starts some.
 * Throws a DemoStartError that names the variable of a server that cannot be used, or says what to install.
 */
export async function openEngines(
  store: ClusterStore,
  env: Environment,
  start: ServerStarters,
): Promise<ClusterEngines> {
  const name = `cluster_${randomBytes(6).toString("hex")}`;
  const opened: Engine[] = [];
  const close = async (): Promise<void> => {
    await Promise.all(opened.map((engine) => engine.close()));
  };
  try {
    const postgres = await openEngine(postgresKind, { env, start: start.postgres, name });
    opened.push(postgres);
    if (store === "postgres") {
      return {
        env: { STORE_URL: postgres.url, STORE_SCHEMA: name, DATABASE_URL: undefined },
        description: [postgres.description],
        close,
      };
    }
    const redis = await openEngine(redisKind, { env, start: start.redis, name });
    opened.push(redis);
    return {
      env: { STORE_URL: redis.url, DATABASE_URL: postgres.url, STORE_SCHEMA: name, KEY_PREFIX: name },
      description: [postgres.description, redis.description],
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

interface Engine {
  readonly url: string;
  readonly description: string;
  close(): Promise<void>;
}

interface EngineKind {
  readonly server: string;
  readonly variable: string;
  readonly install: string;
  /** Makes sure that the platforms can work there. Throws a SettingError that names the variable. */
  readonly prepare: (url: string, name: string) => Promise<void>;
  /** Removes what has `name` from a server that goes on. */
  readonly remove: (url: string, name: string) => Promise<void>;
}

const postgresKind: EngineKind = {
  server: "PostgreSQL",
  variable: "DATABASE_URL",
  install: "install it (the programs postgres and initdb)",
  prepare: createSchema,
  remove: removeSchema,
};

const redisKind: EngineKind = {
  server: "Redis",
  variable: "REDIS_URL",
  install: "install it (the program redis-server or valkey-server)",
  prepare: reachRedis,
  remove: removeKeys,
};

interface EngineWish {
  readonly env: Environment;
  readonly start: () => Promise<StartedServer | undefined>;
  readonly name: string;
}

async function openEngine(kind: EngineKind, { env, start, name }: EngineWish): Promise<Engine> {
  const { server, variable, install, remove } = kind;
  const given = env[variable];
  if (given !== undefined && given !== "") {
    await prepare(kind, given, name);
    const close = async (): Promise<void> => {
      try {
        await remove(given, name);
      } catch (error) {
        console.error(`${variable}: ${name} could not be removed (${failureOf(error)})`);
      }
    };
    return { url: given, description: `${server} of ${variable}, as ${name}`, close };
  }
  const started = await start();
  if (started === undefined) {
    throw new DemoStartError(
      `npm run cluster: there is no ${server}: ${install}, set ${variable} to the URL of one, ${docker}`,
    );
  }
  return { url: started.url, description: `${server} at ${started.url}`, close: () => started.close() };
}

async function prepare(
  { prepare: make, server, variable }: EngineKind,
  url: string,
  name: string,
): Promise<void> {
  try {
    await make(url, name);
  } catch (error) {
    if (!(error instanceof SettingError)) throw error;
    throw new DemoStartError(`${error.message}; without ${variable}, a ${server} is started for this run`);
  }
}

const silent = pino({ level: "silent" });

// Here and not by the platforms: what they say names their own variables.
async function createSchema(text: string, name: string): Promise<void> {
  const variable = "DATABASE_URL";
  const url = parsePostgresUrl(variable, text);
  const pool = await connectPool({ url, variable }, silent);
  try {
    await pool.query(`CREATE SCHEMA ${escapeIdentifier(name)}`);
  } catch (error) {
    throw new SettingError(variable, `a PostgreSQL in which a schema can be created (${failureOf(error)})`);
  } finally {
    await pool.end();
  }
}

async function reachRedis(text: string): Promise<void> {
  const variable = "REDIS_URL";
  const redis = await connectRedis({ url: parseRedisUrl(variable, text), variable }, silent);
  await redis.close();
}

async function removeSchema(url: string, name: string): Promise<void> {
  const client = new Client({ connectionString: url, connectionTimeoutMillis: 3_000 });
  client.on("error", () => {});
  await client.connect();
  try {
    await client.query(`DROP SCHEMA IF EXISTS ${escapeIdentifier(name)} CASCADE`);
  } finally {
    await client.end();
  }
}

async function removeKeys(url: string, name: string): Promise<void> {
  const client = createClient({ url, socket: { connectTimeout: 3_000, reconnectStrategy: false } });
  client.on("error", () => {});
  await client.connect();
  try {
    for await (const keys of client.scanIterator({ MATCH: `${name}*`, COUNT: 1_000 })) {
      if (keys.length > 0) await client.del(keys);
    }
  } finally {
    client.destroy();
  }
}
