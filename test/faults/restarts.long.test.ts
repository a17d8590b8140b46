// Row 17: servers that are restarted and connections that are reset while payouts come in.
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, describe, expect, test } from "@jest/globals";
import { startPrivatePostgres } from "../support/servers/private-postgres.ts";
import { startPrivateRedis } from "../support/servers/private-redis.ts";
import type { TcpProxy } from "../support/servers/tcp-proxy.ts";
import { behindProxy, newKey, openGround, type Ground } from "./engines.ts";
import type { PayerConfig } from "./payer-app.mjs";
import { pay, spawnPayer, type RunningPayer } from "./payers.ts";

const [postgres, redis] = await Promise.all([startPrivatePostgres(), startPrivateRedis({ persist: true })]);

afterAll(() => Promise.all([postgres?.close(), redis?.close()]));

const finalStatuses: ReadonlySet<number> = new Set([200, 409]);

/** One payer of the service: a new payout after the other, each repeated until its answer is final. */
async function payOneAfterTheOther(payers: readonly RunningPayer[], isOver: () => boolean, begun: string[]) {
  while (!isOver()) {
    const key = newKey();
    begun.push(key);
    let accepted = 0;
    for (let attempt = 0; ; attempt++) {
      const payer = payers[attempt % payers.length] ?? payers[0];
      if (payer === undefined) throw new Error("no payer");
      // Each attempt comes twice, as from a service whose time-out is too short.
      const answers = await Promise.all([pay(payer, key), pay(payer, key)]);
      const statuses = answers.map(({ status }) => status);
      accepted += statuses.filter((status) => status === 200).length;
      if (statuses.some((status) => finalStatuses.has(status))) break;
      if (attempt > 300) throw new Error(`no final answer: ${JSON.stringify(answers)}`);
      await sleep(30);
    }
    expect(accepted).toBeLessThanOrEqual(1);
  }
}

async function untilBegun(isEnough: () => boolean): Promise<void> {
  for (const end = performance.now() + 10_000; !isEnough(); await sleep(20)) {
    if (performance.now() > end) throw new Error("too few payouts go through");
  }
}

/** Breaks something while two processes are under load; in the end each key must have been paid once. */
async function underLoad(ground: Ground, config: PayerConfig, breakIt: () => Promise<void>): Promise<void> {
  const payers = await Promise.all([spawnPayer(config), spawnPayer(config)]);
  const begun: string[] = [];
  let isOver = false;
  const load = Promise.all(Array.from({ length: 6 }, () => payOneAfterTheOther(payers, () => isOver, begun)));
  const faults = (async () => {
    await untilBegun(() => begun.length > 12);
    await breakIt();
    // It recovers by itself: new payouts go through, in the processes that lived through it.
    const broken = begun.length;
    await untilBegun(() => begun.length > broken + 12);
  })().finally(() => {
    isOver = true;
  });
  const ended = await Promise.allSettled([load, faults]);
  for (const end of ended) if (end.status === "rejected") throw end.reason;
  for (const key of begun) {
    expect({ key, payments: await ground.payments(key) }).toEqual({ key, payments: 1 });
    for (const payer of payers) expect(await pay(payer, key)).toMatchObject({ status: 409 });
  }
}

async function resetOften(proxy: TcpProxy): Promise<void> {
  for (let reset = 0; reset < 10; reset++) {
    proxy.cut();
    await sleep(60);
  }
}

// A second run could pay again: whoever outlives a lease is held for an operator, or finishes itself.
const settings = { recovery: "hold", times: { storeTimeoutMs: 800, leaseMs: 5_000 } } as const;

(postgres === undefined ? describe.skip : describe)("on PostgreSQL", () => {
  const url = postgres?.url ?? "";

  test.each(["fast", "immediate"] as const)(
    "row 17, Postgres restart (%s) under load: recovers by itself; 1 pay",
    async (mode) => {
      const ground = await openGround("postgres", url);
      try {
        await underLoad(ground, { engine: ground.engine, ...settings }, async () => {
          await postgres?.stop(mode);
          await sleep(300);
          await postgres?.start();
        });
      } finally {
        await ground.close();
      }
    },
  );

  test("row 17, connection reset under load: recovers by itself; 1 pay", async () => {
    const ground = await openGround("postgres", url);
    const { engine, proxy } = await behindProxy(ground);
    try {
      await underLoad(ground, { engine, ...settings }, () => resetOften(proxy));
    } finally {
      await ground.close();
    }
  });
});

(redis === undefined ? describe.skip : describe)("on Redis", () => {
  const url = redis?.url ?? "";

  test.each(["stop", "kill"] as const)(
    "row 17, Redis restart (%s) under load: recovers by itself; 1 pay",
    async (mode) => {
      const ground = await openGround("redis", url);
      try {
        await underLoad(ground, { engine: ground.engine, ...settings }, async () => {
          await redis?.[mode]();
          await sleep(300);
          await redis?.start();
        });
      } finally {
        await ground.close();
      }
    },
  );

  test("row 17, connection reset under load: recovers by itself; 1 pay", async () => {
    const ground = await openGround("redis", url);
    const { engine, proxy } = await behindProxy(ground);
    try {
      await underLoad(ground, { engine, ...settings }, () => resetOften(proxy));
    } finally {
      await ground.close();
    }
  });
});
