import { idempotentRoute } from "@countersign/fetch";
import { memoryIdempotencyStore } from "@countersign/idempotency";
import { expect, test } from "@jest/globals";
import { eventually } from "@countersign/test-support/runs/eventually.ts";

test("a time-out around a route leaves the key with its handler until that has ended", async () => {
  let pay = (): void => {};
  const paid = new Promise<void>((resolve) => (pay = resolve));
  const store = memoryIdempotencyStore();
  const options = { store, key: () => "k", fingerprint: () => "f", waitMs: 0 };
  let ran = 0;
  const route = idempotentRoute(options, async () => {
    ran += 1;
    await paid;
    return new Response("paid");
  });
  const ask = (): Promise<Response> =>
    route(new Request("https://platform.example/pay", { method: "POST", body: "{}" }));
  const first = ask();
  await eventually(() => ran === 1);
  const timeOut = Promise.resolve(new Response(null, { status: 503 }));
  expect((await Promise.race([first, timeOut])).status).toBe(503);
  expect(store.read("k")).toMatchObject({ state: "run" });
  expect((await ask()).status).toBe(503);
  pay();
  expect((await first).status).toBe(200);
  expect((await ask()).status).toBe(409);
  expect(ran).toBe(1);
});
