import { idempotentRoute } from "@countersign/fetch";
import { memoryAnswerStore, memoryIdempotencyStore } from "@countersign/idempotency";
import { idempotencyKeyHeader } from "@countersign/idempotency-guard";
import { describe, expect, test } from "@jest/globals";

const post = (key: string | undefined, init: RequestInit = {}): Request =>
  new Request("https://platform.example/refunds", {
    method: "POST",
    body: init.method === "GET" ? null : "{}",
    ...(key !== undefined && { headers: { "Idempotency-Key": key } }),
    ...init,
  });

function serve(
  make: () => Response,
  limit = "100kb",
  options: Partial<Parameters<typeof idempotentRoute>[0]> = {},
) {
  let ran = 0;
  const route = idempotentRoute(
    {
      store: memoryIdempotencyStore(),
      waitMs: 0,
      ...options,
      ...idempotencyKeyHeader(),
      replay: { answers: memoryAnswerStore(), callers: "shared", limit, headers: ["Location"] },
    },
    (_request, idempotency) => {
      if (idempotency !== undefined) ran += 1;
      return make();
    },
  );
  return { route, ran: () => ran };
}

describe("idempotentRoute with replay", () => {
  test("keeps an answer without content, and one in pieces", async () => {
    const empty = serve(() => new Response(null, { status: 204 }));
    await empty.route(post('"k"'));
    expect((await empty.route(post('"k"'))).status).toBe(204);
    const pieces = serve(() => new Response(new Blob(["a", "b"]).stream()));
    expect(await (await pieces.route(post('"k"'))).text()).toBe("ab");
    expect(await (await pieces.route(post('"k"'))).text()).toBe("ab");
  });

  test("lets an answer over the limit out as it is, and is 409 from then on", async () => {
    const { route } = serve(() => new Response(new Blob(["x".repeat(3_000_000)]).stream()), "1kb");
    expect((await (await route(post('"k"'))).text()).length).toBe(3_000_000);
    expect((await route(post('"k"'))).status).toBe(409);
  });

  // Its lease ends with its heartbeats: a second attempt would pay again.
  test.each(["hold", "rerun"] as const)(
    "under %s lets an answer out whose body does not end, and is 409 from then on",
    async (recovery) => {
      let isCancelled = false;
      const body = (): ReadableStream =>
        new ReadableStream({
          start: (controller) => controller.enqueue(Buffer.from("a")),
          cancel: () => void (isCancelled = true),
        });
      const { route, ran } = serve(() => new Response(body()), "1kb", {
        recovery,
        leaseMs: 1_000,
        storeTimeoutMs: 500,
      });
      const response = await route(post('"k"'));
      const reader = response.body?.getReader();
      expect([response.status, (await reader?.read())?.value]).toEqual([200, Buffer.from("a")]);
      expect([(await route(post('"k"'))).status, ran()]).toEqual([409, 1]);
      // Nothing of ours reads on.
      await reader?.cancel();
      expect(isCancelled).toBe(true);
    },
  );

  test("keeps nothing of a body that the handler has read itself", async () => {
    const { route } = serve(() => {
      const response = new Response("x");
      void response.text();
      return response;
    });
    expect((await route(post('"k"'))).status).toBe(200);
    expect((await route(post('"k"'))).status).toBe(409);
  });
});
