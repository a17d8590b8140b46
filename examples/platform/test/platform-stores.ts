import path from "node:path";
import type { Environment } from "@countersign/example-settings";
import { describe } from "@jest/globals";
import { createClient } from "redis";
import { afterTest, testFolder } from "@countersign/test-support/runs/after-test.ts";
import {
  describeOnPostgres,
  describeOnRedis,
  isolatedName,
  postgresUrl,
  redisUrl,
} from "@countersign/test-support/servers/engines.ts";
import { dropSchema } from "./test-storage.ts";

export interface PlatformStore {
  readonly name: string;
  readonly describe: typeof describe.skip;
  readonly isOneDatabase: boolean;
  /** Where platforms keep everything until the test has ended: variables that processes can share. */
  place(): Environment;
}

export const platformStores: readonly PlatformStore[] = [
  { name: "sqlite:", describe, isOneDatabase: true, place: sqlitePlace },
  { name: "postgres:", describe: describeOnPostgres, isOneDatabase: true, place: postgresPlace },
  {
    name: "redis: and postgres:",
    describe: postgresUrl === undefined ? describe.skip : describeOnRedis,
    isOneDatabase: false,
    place: redisPlace,
  },
];

function sqlitePlace(): Environment {
  return { STORE_URL: `sqlite:${path.join(testFolder(), "platform.db")}` };
}

function postgresPlace(): Environment {
  const schema = isolatedName("platform");
  afterTest(() => dropSchema(schema));
  return { STORE_URL: postgresUrl, STORE_SCHEMA: schema };
}

function redisPlace(): Environment {
  const name = isolatedName("platform");
  afterTest(() => Promise.all([dropSchema(name), dropKeys(name)]));
  return { STORE_URL: redisUrl, DATABASE_URL: postgresUrl, STORE_SCHEMA: name, KEY_PREFIX: name };
}

export async function dropKeys(prefix: string): Promise<void> {
  const client = createClient({ url: redisUrl! });
  await client.connect();
  for await (const keys of client.scanIterator({ MATCH: `${prefix}*`, COUNT: 1_000 })) {
    if (keys.length > 0) await client.del(keys);
  }
  await client.close();
}
