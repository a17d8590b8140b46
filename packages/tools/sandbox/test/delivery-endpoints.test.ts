import { afterEach, describe, expect, test } from "@jest/globals";
import type { DeliveryOptions } from "../src/index.ts";
import { DeliveryBench, event, registration, idsOf } from "./delivery-bench.ts";
import { selfSignedCertificate } from "@countersign/test-support/servers/certificates.ts";

const bench = new DeliveryBench();
afterEach(() => bench.close());

const quick = { initialDelayMs: 5, maxDelayMs: 10, stopWaitMs: 1000 } as const satisfies DeliveryOptions;

describe("endpoints", () => {
  test("each gets every notification with its own credentials", async () => {
    const [first, second] = [await bench.receiver(), await bench.receiver()];
    const service = bench.service({ options: quick });
    const other = { username: "other", password: "other-password", secret: "other-secret" };
    service.addEndpoint(registration(first.url));
    service.addEndpoint(registration(second.url, other));
    service.start();
    service.notify([event("e1"), event("e2")]);
    await service.idle();
    expect(idsOf(first.received)).toEqual(["e1+e2"]);
    expect(second.received[0]?.body).toEqual(first.received[0]?.body);
    expect(first.received[0]?.credentials).toBe("service:test-password");
    expect(second.received[0]?.credentials).toBe("other:other-password");
    expect(first.received[0]?.signedBy("test-secret")).toBe(true);
    expect(second.received[0]?.signedBy("other-secret")).toBe(true);
  });

  test("are listed without credentials, in the order of their registration", () => {
    const service = bench.service();
    const added = ["https://a.example/x", "https://b.example/y"].map((url) =>
      service.addEndpoint(registration(url)),
    );
    expect(service.endpoints()).toEqual(added);
    expect(added.map(({ url }) => url)).toEqual(["https://a.example/x", "https://b.example/y"]);
    expect(JSON.stringify(added)).not.toContain("test-");
  });

  test("get nothing of what happened before them", async () => {
    const receiver = await bench.receiver();
    const service = bench.service();
    service.start();
    service.notify([event("before")]);
    service.addEndpoint(registration(receiver.url));
    service.notify([event("after")]);
    await service.idle();
    expect(idsOf(receiver.received)).toEqual(["after"]);
  });

  test("that are slow or refuse hold up no other endpoint and no other webhook", async () => {
    let release = (): void => {};
    const hanging = new Promise<void>((resolve) => (release = resolve));
    const slow = await bench.receiver(async ({ eventIds }) => {
      if (eventIds.includes("stuck")) await hanging;
      return 200;
    });
    const good = await bench.receiver();
    const refusing = await bench.receiver(({ eventIds }) => (eventIds.includes("stuck") ? 500 : 200));
    const service = bench.service({
      options: { ...quick, concurrency: 2, initialDelayMs: 60_000, maxDelayMs: 60_000 },
    });
    for (const { url } of [slow, good, refusing]) service.addEndpoint(registration(url));
    service.start();
    const ids = ["stuck", "e1", "e2", "e3", "e4"];
    for (const id of ids) service.notify([event(id)]);
    while ([slow, good, refusing].some(({ received }) => received.length < ids.length)) {
      // oxlint-disable-next-line no-await-in-loop -- until all have arrived
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    expect(service.list({ eventId: "stuck" }).map(({ state }) => state)).toEqual([
      "pending",
      "delivered",
      "pending",
    ]);
    release();
  });

  test("are reached by https with the issuer in ca", async () => {
    const tls = selfSignedCertificate();
    const receiver = await bench.receiver(undefined, tls);
    const states = await Promise.all(
      [tls.cert, undefined].map(async (ca) => {
        const service = bench.service({ ca, options: { ...quick, retryForMs: 0 } });
        service.addEndpoint(registration(receiver.url, { allowHttp: false }));
        service.start();
        service.notify([event("e1")]);
        await service.idle();
        return service.list()[0];
      }),
    );
    expect(states).toMatchObject([
      { state: "delivered", attempts: [{ status: 200 }] },
      { state: "failed", attempts: [{ error: "certificate-rejected" }] },
    ]);
  });

  test.each([
    [200, "delivered"],
    [201, "delivered"],
    [299, "delivered"],
    [300, "failed"],
    [308, "failed"],
    [404, "failed"],
    [503, "failed"],
  ])("that answer %d leave a webhook %s", async (status, state) => {
    const receiver = await bench.receiver(() => status);
    const service = bench.started(receiver, { options: { ...quick, retryForMs: 0 } });
    service.notify([event("e1")]);
    await service.idle();
    expect(service.list()).toMatchObject([{ state, attempts: [{ status }] }]);
  });

  test("get at most so many requests at the same time", async () => {
    const receiver = await bench.receiver(() => new Promise((resolve) => setTimeout(() => resolve(200), 5)));
    const service = bench.started(receiver, { options: { ...quick, concurrency: 3 } });
    for (let index = 0; index < 12; index += 1) service.notify([event(`e${index}`)]);
    await service.idle();
    expect(receiver.received).toHaveLength(12);
    expect(receiver.mostAtOnce()).toBe(3);
  });
});
