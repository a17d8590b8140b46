// A time-out behind the guard: it answers within the handler's asynchronous context, while the handler works on.
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { payoutPlugin } from "@countersign/fastify";
import { memoryNonceStore } from "@countersign/http-signature-verify";
import { memoryIdempotencyStore, type MemoryIdempotencyStore } from "@countersign/idempotency";
import { describe, expect, test } from "@jest/globals";
import { fastify, type FastifyInstance, type FastifyReply } from "fastify";
import { signPayout } from "../../../../test/adapters/payout-scene.ts";
import { eventually } from "@countersign/test-support/runs/eventually.ts";
import { send } from "@countersign/test-support/servers/http-client.ts";
import { servicePublicPem } from "@countersign/test-support/signers/test-keys.ts";

type PayoutPluginOptions = Extract<Parameters<typeof payoutPlugin>[0], { readonly handler: unknown }>;

interface Scene {
  readonly store: MemoryIdempotencyStore;
  readonly pay: () => Promise<number>;
  readonly state: () => string;
}

interface Setting {
  readonly handler: PayoutPluginOptions["handler"];
  readonly idempotency?: Partial<PayoutPluginOptions["idempotency"]>;
  readonly prepare?: (app: FastifyInstance) => void;
}

async function served({ handler, idempotency, prepare }: Setting, work: (scene: Scene) => Promise<void>) {
  const app = fastify({ forceCloseConnections: true });
  const store = memoryIdempotencyStore();
  prepare?.(app);
  app.register(
    payoutPlugin({
      url: "/api/v1/transaction",
      addresses: { allow: ["127.0.0.1"] },
      signature: { keys: { "test-key": servicePublicPem }, nonces: memoryNonceStore() },
      idempotency: { store, recovery: "hold", waitMs: 0, ...idempotency },
      handler,
    }),
  );
  const address = await app.listen({ port: 0, host: "127.0.0.1" });
  const port = Number(new URL(address).port);
  const state = (): string => {
    const states = (["running", "held", "done"] as const).filter(
      (one) => store.list({ state: one, limit: 10 }).entries.length > 0,
    );
    return states.join(" ") || "free";
  };
  try {
    await work({
      store,
      state,
      pay: async () => (await send(port, signPayout({ nonce: randomUUID() }))).status,
    });
  } finally {
    await app.close();
  }
}

/** A time-out as apps write it: a hook that answers when the handler is not quick enough. */
function timeOut(app: FastifyInstance): void {
  app.addHook("preHandler", (_request, reply, next) => {
    setTimeout(() => reply.code(503).send({}), 20).unref();
    next();
  });
}

function opened(): { readonly promise: Promise<void>; readonly open: () => void } {
  let open = (): void => {};
  const promise = new Promise<void>((resolve) => (open = resolve));
  return { promise, open: () => open() };
}

describe("a handler that works on behind the 503 of a time-out", () => {
  test("has its key held at once, and its signal aborted", async () => {
    const bank = opened();
    let paid = 0;
    let aborted: boolean | undefined;
    const handler: Setting["handler"] = async (_request, reply, { idempotency }) => {
      await bank.promise;
      aborted = idempotency.signal.aborted;
      paid += 1;
      reply.send({});
    };
    await served({ handler, prepare: timeOut }, async ({ pay, state }) => {
      expect(await pay()).toBe(503);
      expect(state()).toBe("held");
      expect(await pay()).toBe(503);
      bank.open();
      await eventually(() => paid === 1);
      expect(await pay()).toBe(503);
    });
    expect({ paid, aborted }).toEqual({ paid: 1, aborted: true });
  });

  test.each([
    ["throws its signal's reason", (reason: unknown) => reason],
    ["throws an error whose cause that is", (cause: unknown) => new Error("stopped", { cause })],
  ])("leaves its key held when it %s under hold, and frees it under rerun", async (_name, thrown) => {
    let ran = 0;
    const handler: Setting["handler"] = async (_request, _reply, { idempotency: { signal } }) => {
      ran += 1;
      if (ran === 3) return { paid: true };
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      throw thrown(signal.reason);
    };
    await served({ handler, prepare: timeOut }, async ({ pay, state }) => {
      expect(await pay()).toBe(503);
      expect(state()).toBe("held");
      expect(await pay()).toBe(503);
    });
    expect(ran).toBe(1);
    const idempotency = { recovery: "rerun" } as const;
    await served({ handler, prepare: timeOut, idempotency }, async ({ pay, state }) => {
      expect(await pay()).toBe(503);
      await eventually(() => state() === "free");
      expect(await pay()).toBe(200);
      expect(state()).toBe("done");
    });
    expect(ran).toBe(3);
  });

  test("holds its key when it throws something else: its payment may have been what failed to answer", async () => {
    const bank = opened();
    const handler: Setting["handler"] = async () => {
      await bank.promise;
      throw new Error("Cannot set headers after they are sent to the client");
    };
    await served({ handler, prepare: timeOut }, async ({ pay, state }) => {
      expect(await pay()).toBe(503);
      bank.open();
      await eventually(() => state() === "held");
    });
  });

  test("holds its key when both come in one turn of the event loop", async () => {
    const handler: Setting["handler"] = async (_request, reply) => {
      setTimeout(() => reply.code(503).send({}), 10);
      await new Promise((resolve) => setTimeout(resolve, 10));
    };
    await served({ handler }, async ({ pay, state }) => {
      expect(await pay()).toBe(503);
      await eventually(() => state() === "held");
    });
  });

  test("holds its key when it has returned the reply to answer later", async () => {
    const bank = opened();
    const answerLater = async (reply: FastifyReply): Promise<void> => {
      await bank.promise;
      reply.send({});
    };
    const handler: Setting["handler"] = async (_request, reply) => {
      void answerLater(reply);
      return reply;
    };
    await served({ handler, prepare: timeOut }, async ({ pay, state }) => {
      expect(await pay()).toBe(503);
      await eventually(() => state() === "held");
      bank.open();
    });
  });

  test("holds its key when its own answer comes while hooks still work on the other one", async () => {
    const sending = opened();
    const prepare = (app: FastifyInstance): void =>
      void app.addHook("onSend", async (_request, reply) => {
        if (reply.statusCode === 503) await sending.promise;
      });
    const handler: Setting["handler"] = async (_request, reply) => {
      reply.code(503).send({});
      await new Promise((resolve) => setTimeout(resolve, 5));
      sending.open();
      return reply.send({});
    };
    await served({ handler, prepare }, async ({ pay, state }) => {
      expect(await pay()).toBe(503);
      await eventually(() => state() === "held");
    });
  });

  test("loses its key to an operator when it never ends", async () => {
    const never = opened();
    const short = { leaseMs: 1_000, storeTimeoutMs: 500, handlerTimeoutMs: 1_000 };
    const handler: Setting["handler"] = () => never.promise;
    await served({ handler, prepare: timeOut, idempotency: short }, async ({ pay, state }) => {
      expect(await pay()).toBe(503);
      expect(state()).toBe("held");
      never.open();
    });
  });

  test("keeps its key under rerun until it has ended", async () => {
    const bank = opened();
    const handler: Setting["handler"] = () => bank.promise;
    await served(
      { handler, prepare: timeOut, idempotency: { recovery: "rerun" } },
      async ({ pay, state }) => {
        expect(await pay()).toBe(503);
        expect(state()).toBe("running");
        bank.open();
        await eventually(() => state() === "free");
      },
    );
  });
});

test("a handler that returns nothing once its caller has left has its key completed, as by an empty answer", async () => {
  const handler: Setting["handler"] = async (request, reply) => {
    request.raw.socket.destroy();
    await once(reply.raw, "close");
  };
  await served({ handler }, async ({ pay, state }) => {
    await pay().catch(() => undefined);
    await eventually(() => state() !== "running");
    expect(await pay()).toBe(409);
  });
});

describe("a handler that answers 503 itself leaves a free key behind under rerun", () => {
  const idempotency = { recovery: "rerun" } as const;
  const later = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 5));
  test.each<[string, Setting["handler"]]>([
    ["by a payload", async (_request, reply) => (await later(), reply.code(503), {})],
    ["by send() as its last step", async (_request, reply) => (await later(), void reply.code(503).send({}))],
    ["by send() in a function of its own", async (_request, reply) => answerLater(reply)],
    ["by the reply that it returns", async (_request, reply) => (await later(), reply.code(503).send({}))],
    [
      "by the reply that it awaits",
      async (_request, reply) => (await later(), void (await reply.code(503).send({}))),
    ],
    ["before it waits for anything", async (_request, reply) => void reply.code(503).send({})],
    ["without a promise", (_request, reply) => reply.code(503).send({})],
    ["in a callback", (_request, reply) => void setTimeout(() => reply.code(503).send({}), 5)],
    ["by what it throws", async () => (await later(), Promise.reject(new Error("the bank is away")))],
    ["by a promise of somebody else", (_request, reply) => thenable(() => (reply.code(503), {}))],
  ])("%s", async (_name, failing) => {
    let ran = 0;
    const handler: Setting["handler"] = (...call) => (++ran === 1 ? failing(...call) : { paid: true });
    await served({ handler, idempotency }, async ({ pay, state }) => {
      expect(await pay()).toBeGreaterThanOrEqual(500);
      expect(state()).toBe("free");
      expect(await pay()).toBe(200);
    });
    expect(ran).toBe(2);
  });

  test.each<[string, Setting["handler"]]>([
    ["by a payload", async (_request, reply) => (reply.code(503), {})],
    ["by the reply that it returns", async (_request, reply) => (await later(), reply.code(503).send({}))],
    ["by the reply that it awaits", async (_request, reply) => void (await reply.code(503).send({}))],
  ])("behind a hook that takes its time with the answer: %s", async (_name, handler) => {
    const prepare = (app: FastifyInstance): void => void app.addHook("onSend", async () => later());
    await served({ handler, prepare, idempotency }, async ({ pay, state }) => {
      expect(await pay()).toBe(503);
      expect(state()).toBe("free");
    });
  });

  async function answerLater(reply: Parameters<Setting["handler"]>[1]): Promise<void> {
    await later();
    const answer = async (): Promise<void> => void reply.code(503).send({});
    await answer();
  }

  /** Works when then() is called, each time, as query builders do. */
  function thenable(work: () => unknown): PromiseLike<unknown> {
    let calls = 0;
    return {
      // oxlint-disable-next-line unicorn/no-thenable -- what is tested
      then(resolved) {
        calls += 1;
        if (calls > 1) throw new Error("runs twice");
        return Promise.resolve(work()).then(resolved);
      },
    };
  }
});
