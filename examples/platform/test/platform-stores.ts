import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import type { Environment } from "@countersign/example-settings";
import { describe } from "@jest/globals";
import { createClient } from "redis";
import {
  describeOnPostgres,
  describeOnRedis,
  isolatedName,
  postgresUrl,
  redisUrl,
} from "@countersign/test-support/servers/engines.ts";
import { dropSchema } from "./test-storage.ts";

/** Where a platform keeps everything: variables of its environment that processes can share. */
export interface TestPlace {
  readonly env: Environment;
  /** Removes everything that platforms have left there. */
  remove(): Promise<void>;
}

export interface PlatformStore {
  readonly name: string;
  readonly describe: typeof describe.skip;
  readonly isOneDatabase: boolean;
  place(): TestPlace;
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

function sqlitePlace(): TestPlace {
  const folder = mkdtempSync(path.join(tmpdir(), "platform-store-"));
  return {
    env: { STORE_URL: `sqlite:${path.join(folder, "platform.db")}` },
    async remove() {
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function postgresPlace(): TestPlace {
  const schema = isolatedName("platform");
  return {
    env: { STORE_URL: postgresUrl, STORE_SCHEMA: schema },
    remove: () => dropSchema(schema),
  };
}

function redisPlace(): TestPlace {
  const name = isolatedName("platform");
  return {
    env: { STORE_URL: redisUrl, DATABASE_URL: postgresUrl, STORE_SCHEMA: name, KEY_PREFIX: name },
    async remove() {
      await Promise.all([dropSchema(name), dropKeys(name)]);
    },
  };
}

export async function dropKeys(prefix: string): Promise<void> {
  const client = createClient({ url: redisUrl! });
  await client.connect();
  for await (const keys of client.scanIterator({ MATCH: `${prefix}*`, COUNT: 1_000 })) {
    if (keys.length > 0) await client.del(keys);
  }
  await client.close();
}
