import type { IdempotencyListQuery } from "@countersign/idempotency";
import { createRedisStores, type RedisStores, type RedisStoresOptions } from "@countersign/store-redis";
import { CommandError, exitCodes, memberOf, inWordsOfFlags } from "../command-io.ts";
import { doubtsOf, type Row, type StoreCondition } from "../doctor/findings.ts";
import type { Engine, OperatorStore, Remembered } from "./store.ts";
import { connectToRedis } from "./redis-connection.ts";
import { openedInTime, openTimeoutMs } from "./store-failure.ts";
import type { StoreTarget } from "./store-target.ts";

export const redisEngine: Engine = { open, inspect };

type Masters = Awaited<ReturnType<typeof connectToRedis>>["masters"];

interface Shard {
  readonly id: string;
  readonly stores: RedisStores;
}

async function open({ location, prefix }: StoreTarget, { retentionMs }: Remembered): Promise<OperatorStore> {
  const options = { prefix, retentionMs, commandTimeoutMs: openTimeoutMs };
  assertOptions(options);
  const { masters, close } = await connectToRedis(location);
  try {
    await assertPrimary(location, masters);
  } catch (error) {
    close();
    throw error;
  }
  const shards = masters.map(({ id, sendCommand }) => ({
    id,
    stores: createRedisStores({ ...options, sendCommand }),
  }));
  const [first] = shards;
  if (first === undefined) throw new Error("the cluster has no server that holds keys");
  const { idempotency } = first.stores;
  return {
    idempotency: {
      claim: (key, claim) => idempotency.claim(key, claim),
      hold: (key, token, reason) => idempotency.hold(key, token, reason),
      read: (key) => idempotency.read(key),
      resolve: (key, outcome, decision) => idempotency.resolve(key, outcome, decision),
      reopen: (key, decision) => idempotency.reopen(key, decision),
      readReleased: (key) => idempotency.readReleased(key),
      prune: () => idempotency.prune(),
      list: (query) => (first.id === "" ? idempotency.list(query) : listShards(shards, query)),
    },
    nonces: undefined,
    elsewhere: () => otherPrefixes(masters, prefix ?? "countersign"),
    close() {
      for (const { stores } of shards) stores.close();
      close();
    },
  };
}

const mostPrefixes = 5;
const mostAsked = 100;
// A million names of a server that others use as well.
const mostPages = 1000;

/** How the names of other stores' keys begin. */
async function otherPrefixes(masters: Masters, own: string): Promise<readonly string[]> {
  const found = new Set<string>();
  const asked = new Set([own]);
  for (const { sendCommand } of masters) {
    const ask = (...command: string[]): Promise<unknown> =>
      sendCommand(command, { key: undefined, isReadonly: false });
    let cursor = "0";
    let pages = 0;
    do {
      pages += 1;
      // oxlint-disable-next-line no-await-in-loop -- the cursor of a page leads to the next
      const page: unknown = await ask("SCAN", cursor, "MATCH", "*:key:*", "COUNT", "1000");
      const [next, names]: unknown[] = Array.isArray(page) ? page : [];
      cursor = typeof next === "string" ? next : "0";
      for (const name of Array.isArray(names) ? names.map(String) : []) {
        const prefix = name.slice(0, name.indexOf(":key:"));
        if (asked.has(prefix)) continue;
        asked.add(prefix);
        // Other programs may name keys like that.
        // oxlint-disable-next-line no-await-in-loop -- once for a prefix
        if (Number(await unlessRefused(ask("HEXISTS", name, "fingerprint"))) === 1) found.add(prefix);
      }
    } while (cursor !== "0" && pages < mostPages && asked.size < mostAsked);
  }
  return [...found].slice(0, mostPrefixes);
}

/** What a replica says is old, and what it takes, if anything, never reaches the platform. */
async function assertPrimary({ shown }: StoreTarget["location"], masters: Masters): Promise<void> {
  for (const { sendCommand } of masters) {
    const asked = sendCommand(["INFO", "replication"], { key: undefined, isReadonly: false });
    // oxlint-disable-next-line no-await-in-loop -- one server after the other
    const info = await unlessRefused(openedInTime(shown, asked));
    if (typeof info !== "string" || !/^role:slave/m.test(info)) continue;
    throw new CommandError(`${shown} is a replica; connect to the primary server`, exitCodes.otherwise);
  }
}

async function inspect({ location, prefix }: StoreTarget): Promise<StoreCondition> {
  assertOptions({ prefix, commandTimeoutMs: openTimeoutMs });
  const { masters, close } = await connectToRedis(location);
  try {
    const doubts = new Map<string, StoreCondition["doubts"][number]>();
    let clock: StoreCondition["clock"];
    for (const { sendCommand } of masters) {
      const ask = async (...command: string[]): Promise<unknown> => {
        const answer = sendCommand(command, { key: undefined, isReadonly: false });
        return await openedInTime(location.shown, answer);
      };
      // oxlint-disable-next-line no-await-in-loop -- one server after the other
      for (const doubt of await redisDoubts(ask)) doubts.set(doubt.join(), doubt);
      const sentMs = Date.now();
      // oxlint-disable-next-line no-await-in-loop -- see above
      const [seconds, micros]: unknown[] = Object(await ask("TIME"));
      const theirsMs = Number(seconds) * 1000 + Math.floor(Number(micros) / 1000);
      clock ??= { theirsMs, sentMs, receivedMs: Date.now() };
    }
    return { doubts: [...doubts.values()], clock };
  } finally {
    close();
  }
}

type Field = (name: string) => string;

const serverRows: readonly Row<Field>[] = [
  [
    "redis-evicts",
    (field) =>
      field("maxmemory_policy") !== "noeviction" &&
      `maxmemory-policy is ${field("maxmemory_policy")}: short of memory, the server forgets paid keys`,
  ],
  [
    "redis-forgets",
    (field) => field("aof_enabled") !== "1" && "appendonly is no: a restart forgets paid keys and nonces",
  ],
  ["redis-replica", (field) => field("role") === "slave" && "the server is a replica"],
  [
    "redis-old",
    (field) =>
      /^(?:[0-5]\.|6\.[01]\.)/.test(field("redis_version")) &&
      `Redis ${field("redis_version")} is older than 6.2`,
  ],
  [
    "redis-appendfsync",
    (field) =>
      field("aof_enabled") === "1" &&
      field("appendfsync") !== "always" &&
      `appendfsync is ${field("appendfsync")}: a crash can forget the last second`,
  ],
];

export async function redisDoubts(
  ask: (...command: string[]) => Promise<unknown>,
): Promise<StoreCondition["doubts"]> {
  const info = await unlessRefused(ask("INFO"));
  if (typeof info !== "string") return [["redis-unreadable", "the server shows no INFO to this user"]];
  // Managed servers refuse CONFIG; what cannot be read is no finding.
  const answer = await unlessRefused(ask("CONFIG", "GET", "appendfsync"));
  const value: unknown = Array.isArray(answer) ? answer[1] : memberOf(answer, "appendfsync");
  const appendfsync = typeof value === "string" && /^[a-z]{1,20}$/.test(value) ? value : "always";
  const field: Field = (name) =>
    name === "appendfsync"
      ? appendfsync
      : (new RegExp(`^${name}:([\\w.-]{1,40})`, "m").exec(info)?.[1] ?? "unknown");
  return doubtsOf(serverRows, field);
}

async function unlessRefused(answer: Promise<unknown>): Promise<unknown> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof CommandError) throw error;
    return undefined;
  }
}

// Before any connection, so that a wrong flag fails the same way every day.
function assertOptions(options: Omit<RedisStoresOptions, "sendCommand">): void {
  const connected = { ...options, sendCommand: () => Promise.reject(new Error("not connected")) };
  inWordsOfFlags(() => createRedisStores(connected)).close();
}

/** Lists one server after another; a cursor is the server's id and its own cursor. */
async function listShards(shards: readonly Shard[], { cursor, ...query }: IdempotencyListQuery) {
  const [id, at] = cursor?.split(":") ?? [shards[0]?.id];
  const index = shards.findIndex((shard) => shard.id === id);
  const shard = shards[index];
  // A departed server may have moved its keys to one that was already listed.
  if (shard === undefined) throw new TypeError("the cursor is of no server of this cluster; begin anew");
  const page = await shard.stores.idempotency.list({ ...query, cursor: at === "" ? undefined : at });
  const next = shards[index + 1];
  if (page.cursor !== undefined) return { ...page, cursor: `${shard.id}:${page.cursor}` };
  return { ...page, cursor: next === undefined ? undefined : `${next.id}:` };
}
