import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, jest, test } from "@jest/globals";
import { DeliveryService } from "../src/delivery/delivery-service.ts";
import Database from "libsql";
import { credentials, DeliveryBench, event, FakeTime, registration, idsIn, idsOf } from "./delivery-bench.ts";

const bench = new DeliveryBench();
afterEach(() => bench.close());

describe("stop and start", () => {
  test("a request that a process left under way is sent again by the next one", async () => {
    const directory = mkdtempSync(join(tmpdir(), "countersign-delivery-"));
    const file = join(directory, "sandbox.db");
    try {
      const receiver = await bench.receiver((_webhook, index) => (index === 0 ? undefined : 200));
      const first = new Database(file);
      const dying = new DeliveryService({ database: first, options: { stopWaitMs: 0 } });
      dying.addEndpoint(registration(receiver.url));
      dying.start();
      dying.notify([event("e1")]);
      while (receiver.received.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
      dying.start();
      await dying.stop();
      expect(dying.list()).toMatchObject([{ state: "pending", attempts: [] }]);
      first.close();
      const second = new Database(file);
      const service = new DeliveryService({ database: second });
      service.start();
      await service.idle();
      expect(service.list()).toMatchObject([{ state: "delivered", attempts: [{ status: 200 }] }]);
      expect(receiver.received[1]?.body).toEqual(receiver.received[0]?.body);
      await service.stop();
      second.close();
    } finally {
      rmSync(directory, { recursive: true });
    }
  });

  test("what became due while nothing ran gets its attempt, even after the day", async () => {
    const receiver = await bench.receiver((_webhook, index) => (index === 0 ? 500 : 200));
    const database = bench.database();
    const time = new FakeTime();
    const before = bench.started(receiver, { ...time.init, database });
    before.notify([event("e1")]);
    time.letGo();
    await time.armed();
    await before.stop();
    time.nowMs += 10 * 86_400_000;
    const after = bench.service({ ...time.init, database });
    after.start();
    await time.runUntilIdle(after);
    expect(after.list()).toMatchObject([
      { state: "delivered", attempts: [{ status: 500 }, { status: 200 }] },
    ]);
  });

  test("stop waits for the answer of a request under way and writes it down", async () => {
    let answer = (): void => {};
    const arrived = new Promise<void>((resolve) => {
      answer = resolve;
    });
    const receiver = await bench.receiver(async () => {
      answer();
      await new Promise((resolve) => setTimeout(resolve, 20));
      return 200;
    });
    const service = bench.started(receiver);
    service.notify([event("e1")]);
    await arrived;
    await service.stop();
    expect(service.list()).toMatchObject([{ state: "delivered", attempts: [{ status: 200 }] }]);
  });

  test("nothing is sent before start and after stop", async () => {
    const receiver = await bench.receiver();
    const service = bench.service();
    service.addEndpoint(registration(receiver.url));
    service.notify([event("e1")]);
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(receiver.received).toEqual([]);
    service.start();
    service.start();
    await service.idle();
    await service.stop();
    service.notify([event("e2")]);
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(idsOf(receiver.received)).toEqual(["e1"]);
    expect(idsIn(service)).toEqual(["e1", "e2"]);
  });

  test("idle rejects when the service stops before", async () => {
    const receiver = await bench.receiver(() => 500);
    const service = bench.started(receiver);
    service.notify([event("e1")]);
    const idle = service.idle().catch((error: unknown) => error);
    await service.stop();
    expect(await idle).toEqual(new Error("the service stopped with webhooks left to send"));
  });

  test("idle resolves at once when there is nothing to do, running or not", async () => {
    const service = bench.service();
    await service.idle();
    service.start();
    await service.idle();
    await service.stop();
    await service.stop();
    await service.idle();
  });

  test("a database that fails makes a pause, not an end", async () => {
    const warned = jest.spyOn(process, "emitWarning").mockImplementation(() => {});
    const receiver = await bench.receiver();
    const time = new FakeTime();
    const database = bench.database();
    const service = bench.started(receiver, { ...time.init, database });
    service.notify([event("e1")]);
    database.exec("ALTER TABLE webhook_attempts RENAME TO gone");
    time.letGo();
    await time.armed();
    expect(time.delayMs).toBe(1000);
    const [message, name] = warned.mock.calls[0] ?? [];
    expect([message, name]).toEqual([expect.stringContaining("webhook_attempts"), "CountersignWarning"]);
    expect(message).not.toContain(credentials.secret);
    database.exec("ALTER TABLE webhook_deliveries RENAME TO hidden");
    time.letGo();
    expect(time.delayMs).toBe(1000);
    database.exec("ALTER TABLE hidden RENAME TO webhook_deliveries");
    database.exec("ALTER TABLE gone RENAME TO webhook_attempts");
    warned.mockRestore();
    await time.runUntilIdle(service);
    expect(service.list()).toMatchObject([{ state: "delivered", attempts: [{ status: 200 }] }]);
    expect(receiver.received).toHaveLength(2);
  });
});
