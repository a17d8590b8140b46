import { randomUUID } from "node:crypto";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { type IdempotencyKeys, type OwnedKey, idempotencyKeys } from "@countersign/idempotency";
import { withPostgresTransaction } from "@countersign/store-sql/postgres";
import { afterEach, beforeEach, expect } from "@jest/globals";
import type { Pool } from "pg";
import { describeOnPostgres } from "@countersign/test-support/servers/engines.ts";
import { steadyTest as test } from "@countersign/test-support/runs/steadily.ts";
import { pause } from "@countersign/test-support/runs/after-test.ts";
import { connectPool, createSchema, createStores } from "./connections.ts";
import { eventually } from "@countersign/test-support/runs/eventually.ts";

const leaseMs = 1_000;
const connections = 4;

/** A process of the platform: its handlers' connections, and keys whose steps run on these or on others. */
interface Platform {
  readonly keys: IdempotencyKeys;
  readonly handlers: Pool;
}

async function setUp({ ownPool }: { readonly ownPool: boolean }) {
  const admin = connectPool({ max: 1 });
  const schema = await createSchema(admin);
  await admin.query(`CREATE TABLE ${schema}.payouts (idempotency_key text)`);
  const platform = (): Platform => {
    const handlers = connectPool({ max: connections });
    const pool = ownPool ? connectPool({ max: connections }) : handlers;
    const { idempotency: store } = createStores(pool, { schema, lockTimeoutMs: 200 });
    const options = { factory: "test", store, leaseMs, storeTimeoutMs: 900, recovery: "rerun" } as const;
    return { handlers, keys: idempotencyKeys(options) };
  };
  const payouts = async () =>
    (await admin.query<{ key: string }>(`SELECT idempotency_key AS key FROM ${schema}.payouts ORDER BY 1`))
      .rows;

  /** The handler: the payout, and all else that the transaction takes its time for. */
  const pay = ({ handlers }: Platform, attempt: Attempt, first: boolean, work: () => Promise<unknown>) =>
    withPostgresTransaction(handlers, async (client) => {
      if (first) await attempt.owned.completeIn(client);
      await client.query(`INSERT INTO ${schema}.payouts VALUES ($1)`, [attempt.key]);
      await work();
      if (!first) await attempt.owned.completeIn(client);
    });
  return { platforms: [platform(), platform()] as const, payouts, pay };
}

interface Attempt {
  readonly key: string;
  readonly owned: OwnedKey;
}

async function begin({ keys }: Platform, key: string): Promise<Attempt | string> {
  const owned = await keys.acquire({ key, token: randomUUID(), fingerprint: "f" });
  return owned.status === "acquired" ? { key, owned } : owned.status;
}

/** Tries to get the keys, as a service that sends everything again, for one and a half leases. */
async function takeOver(platform: Platform, keys: readonly string[]): Promise<Attempt[]> {
  const taken = new Map<string, Attempt>();
  const end = performance.now() + 1.5 * leaseMs;
  while (taken.size < keys.length && performance.now() < end) {
    const missing = keys.filter((key) => !taken.has(key));
    for (const answer of await Promise.allSettled(missing.map((key) => begin(platform, key)))) {
      if (answer.status === "fulfilled" && typeof answer.value === "object")
        taken.set(answer.value.key, answer.value);
    }
    await pause(50);
  }
  return [...taken.values()];
}

const listener = (): void => {};
// Alarms are what these tests make happen.
beforeEach(() => subscribe("countersign:notice", listener));
afterEach(() => void unsubscribe("countersign:notice", listener));

describeOnPostgres("as many transactions as the pool has connections, each longer than the lease", () => {
  const keys = ["a", "b", "c", "d"];

  /** All keys in transactions of one process, while the other one tries to get them. Resolves to what it got. */
  async function round(
    first: boolean,
    { platforms, pay }: Awaited<ReturnType<typeof setUp>>,
    got: Attempt[],
  ) {
    const [owner, other] = platforms;
    let goOn = (): void => {};
    const gate = new Promise<void>((resolve) => (goOn = resolve));
    let begun = 0;
    const work = () => {
      begun += 1;
      return gate;
    };
    const paid = Promise.allSettled(got.map((attempt) => pay(owner, attempt, first, work)));
    await eventually(() => begun >= got.length);
    const taken = await takeOver(other, keys);
    goOn();
    await paid;
    await Promise.all(got.map(async ({ owned }) => owned.release()));
    return taken;
  }

  const acquired = async (platform: Platform): Promise<Attempt[]> => {
    const attempts = await Promise.all(keys.map((key) => begin(platform, key)));
    return attempts.map((attempt) => {
      if (typeof attempt === "string") throw new Error(attempt);
      return attempt;
    });
  };

  test("are taken over and pay nothing, round for round, where completeIn() is last and nobody can renew a lease", async () => {
    const platform = await setUp({ ownPool: false });
    let { platforms } = platform;
    let owned = await acquired(platforms[0]);
    for (let index = 0; index < 3; index++) {
      owned = await round(false, { ...platform, platforms }, owned);
      expect(owned).toHaveLength(keys.length);
      expect(await platform.payouts()).toEqual([]);
      platforms = [platforms[1], platforms[0]];
    }
    await Promise.all(owned.map(async (attempt) => attempt.owned.release()));
  });

  test.each([
    ["completeIn() is first", { first: true, ownPool: false }],
    ["the stores have a pool of their own", { first: false, ownPool: true }],
  ])("pay in the first round, and nobody gets a key, where %s", async (_case, { first, ownPool }) => {
    const platform = await setUp({ ownPool });
    expect(await round(first, platform, await acquired(platform.platforms[0]))).toEqual([]);
    expect(await platform.payouts()).toEqual(keys.map((key) => ({ key })));
  });
});
