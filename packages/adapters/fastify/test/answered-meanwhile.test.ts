// The app answers by Node's response, as its time-out may, while a hook waits for the store.
import { idempotencyHook } from "@countersign/fastify";
import { memoryIdempotencyStore } from "@countersign/idempotency";
import { expect, test } from "@jest/globals";
import { fastify } from "fastify";
import { steps } from "../../../../test/adapters/store-steps.ts";

test("an answer that has begun is not cut by the refusal of a done key", async () => {
  const app = fastify({ forceCloseConnections: true });
  app.addHook("onRequest", async (_request, reply) => void reply.header("X-App", "1"));
  const store = memoryIdempotencyStore();
  let meanwhile = (): void => undefined;
  const hook = idempotencyHook({
    scope: "pay",
    store: { ...steps(store), claim: async (...claim) => (meanwhile(), store.claim(...claim)) },
    key: () => "a",
    fingerprint: () => "same",
  });
  let paid = 0;
  app.post(
    "/pay",
    {
      preHandler: [
        (_request, reply, next) => {
          if (paid > 0)
            meanwhile = () => {
              reply.raw.writeHead(503).write("please ");
              setTimeout(() => reply.raw.end("wait"), 100);
            };
          next();
        },
        hook,
      ],
    },
    () => ({ paid: (paid += 1) }),
  );
  const address = await app.listen({ port: 0, host: "127.0.0.1" });
  const pay = async (): Promise<[number, string]> => {
    const answer = await fetch(`${address}/pay`, { method: "POST" });
    return [answer.status, await answer.text()];
  };
  try {
    expect(await pay()).toEqual([200, '{"paid":1}']);
    expect(await pay()).toEqual([503, "please wait"]);
    expect(paid).toBe(1);
  } finally {
    await app.close();
  }
});
