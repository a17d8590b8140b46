// Row 13: a store that is away, that comes and goes, or that takes ten seconds.
import { expect } from "@jest/globals";
import { steadyTest as test } from "../support/runs/steadily.ts";
import type { TcpProxy } from "../support/servers/tcp-proxy.ts";
import { behindProxy, describeEngines, newKey, type Ground } from "./engines.ts";
import { pay, startPayer } from "./payers.ts";
import { StoreFaults } from "./store-faults.ts";
import { payUntilDecided } from "./timing.ts";

// A server's disk may stand still for some hundred milliseconds.
const times = { storeTimeoutMs: 600 };
// Above the time-out by what a busy machine needs, far below the ten seconds.
const soonMs = 3_000;

/** Pays at a payer whose handler would stop, were it called. */
async function expectRefusedSoon(payer: { readonly port: number }, key: string): Promise<void> {
  const startedAt = performance.now();
  expect(await pay(payer, key)).toMatchObject({ status: 503, retryAfter: "1" });
  expect(performance.now() - startedAt).toBeLessThan(soonMs);
}

async function expectOnePayment(
  ground: Ground,
  payer: { readonly port: number },
  key: string,
): Promise<void> {
  expect(await ground.payments(key)).toBe(0);
  expect((await payUntilDecided(payer, key)).at(-1)).toMatchObject({ status: 200 });
  expect(await pay(payer, key)).toMatchObject({ status: 409 });
  expect(await ground.payments(key)).toBe(1);
}

describeEngines(["memory", "sqlite", "redis", "postgres"], (ground) => {
  test.each([
    ["down", "throws before"],
    ["silent", "hangs before"],
    ["slow by 10 s", 10_000],
  ] as const)(
    "row 13, store %s at claim: handler not called; 503 within the time-out; then 1 pay",
    async (_, fault) => {
      const key = newKey();
      const faults = new StoreFaults();
      const payer = await startPayer({ engine: ground().engine, times }, { wrapStore: faults.wrap });
      faults.always(fault);
      for (let attempt = 0; attempt < 3; attempt++) await expectRefusedSoon(payer, key);
      faults.always("as usual");
      await expectOnePayment(ground(), payer, key);
    },
  );

  test("row 13, store flapping: each answer is final or 503; 1 pay", async () => {
    const faults = new StoreFaults();
    const payer = await startPayer({ engine: ground().engine, times }, { wrapStore: faults.wrap });
    const keys = Array.from({ length: 8 }, newKey);
    const flaps = [
      "throws before",
      "as usual",
      "throws after",
      "hangs after",
      "as usual",
      "hangs before",
    ] as const;
    for (const method of ["claim", "release", "complete", "read"] as const) {
      faults.fail(method, ...flaps, ...flaps.slice(0, 2));
    }
    for (const key of keys) {
      const answers = await payUntilDecided(payer, key);
      expect([200, 409]).toContain(answers.at(-1)?.status);
      expect(await ground().payments(key)).toBe(1);
    }
  });
});

describeEngines(["redis", "postgres"], (ground) => {
  test.each([
    ["down", (proxy: TcpProxy) => [proxy.refuse(true), proxy.cut()]],
    ["slow by 10 s", (proxy: TcpProxy) => proxy.delay(10_000)],
    ["behind a line that loses its answers", (proxy: TcpProxy) => proxy.dropReplies(true)],
  ])(
    "row 13, server %s: handler not called; 503 within the time-out; recovers by itself; 1 pay",
    async (_, breakLine) => {
      const key = newKey();
      const { engine, proxy } = await behindProxy(ground());
      const payer = await startPayer({ engine, times });
      const earlier = newKey();
      await payUntilDecided(payer, earlier);
      breakLine(proxy);
      for (let attempt = 0; attempt < 2; attempt++) await expectRefusedSoon(payer, key);
      expect(await ground().payments(key)).toBe(0);
      proxy.restore();
      proxy.cut();
      await expectOnePayment(ground(), payer, key);
      expect(await pay(payer, earlier)).toMatchObject({ status: 409 });
    },
  );
});
