// The app answers by Node's response, as its time-out may, while a hook waits for the store.
import { once } from "node:events";
import { idempotencyHook } from "@countersign/fastify";
import { memoryIdempotencyStore } from "@countersign/idempotency";
import { describe, expect, test } from "@jest/globals";
import { fastify, type FastifyReply } from "fastify";
import { eventually } from "@countersign/test-support/runs/eventually.ts";
import { steps } from "../../../../test/doors/store-steps.ts";

test("an answer that has begun is not cut by the refusal of a done key", async () => {
  const app = fastify({ forceCloseConnections: true });
  app.addHook("onRequest", async (_request, reply) => void reply.header("X-App", "1"));
  const store = memoryIdempotencyStore();
  let meanwhile = (): void => undefined;
  const hook = idempotencyHook({
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

describe("a handler of the route whose caller has left", () => {
  const stateAfter = async (handler: (reply: FastifyReply) => unknown, ended: () => Promise<void>) => {
    const app = fastify({ forceCloseConnections: true });
    const store = memoryIdempotencyStore();
    const preHandler = idempotencyHook({ store, key: () => "a", fingerprint: () => "same" });
    app.post("/pay", { preHandler }, async (request, reply) => {
      request.raw.socket.destroy();
      await once(reply.raw, "close");
      return handler(reply);
    });
    const address = await app.listen({ port: 0, host: "127.0.0.1" });
    try {
      await fetch(`${address}/pay`, { method: "POST" }).catch(() => undefined);
      await ended();
      await eventually(() => store.read("a")?.state !== "run");
      return store.read("a");
    } finally {
      await app.close();
    }
  };
  const atOnce = (): Promise<void> => Promise.resolve();

  test("has its key completed when it returns nothing, as by an empty answer", async () => {
    expect(await stateAfter(() => undefined, atOnce)).toMatchObject({ state: "done" });
  });

  test("has its key freed when it returns nothing with the status of a refusal", async () => {
    expect(await stateAfter((reply) => void reply.code(422), atOnce)).toBeUndefined();
  });

  test("decides itself when it returns the reply, and answers later", async () => {
    let refuse: (() => void) | undefined;
    const refused = async (): Promise<void> => {
      await eventually(() => refuse !== undefined);
      refuse?.();
    };
    const state = await stateAfter((reply) => {
      setImmediate(() => (refuse = () => void reply.code(422).send({})));
      return reply;
    }, refused);
    expect(state).toBeUndefined();
  });
});
