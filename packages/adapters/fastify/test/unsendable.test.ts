// What Node refuses to send behind a promise of a check: 500, as from a handler, and the process goes on.
import { idempotencyHook } from "@countersign/fastify";
import { memoryAnswerStore, memoryIdempotencyStore } from "@countersign/idempotency";
import { afterEach, beforeEach, expect, jest, test } from "@jest/globals";
import { fastify } from "fastify";

let warn: jest.SpiedFunction<typeof process.emitWarning>;
beforeEach(() => {
  warn = jest.spyOn(process, "emitWarning").mockImplementation(() => undefined);
});
afterEach(() => warn.mockRestore());

test("the first answer of a key, given again under a reason of other characters, is 500", async () => {
  const app = fastify({ forceCloseConnections: true });
  app.addHook("onRequest", (request, reply, done) => {
    if (request.headers["x-reason"] !== undefined) reply.raw.statusMessage = "\u20ac";
    done();
  });
  const hook = idempotencyHook({
    store: memoryIdempotencyStore(),
    key: (request) => request.headers["x-key"],
    fingerprint: () => "same",
    replay: { answers: memoryAnswerStore(), callers: "shared" },
  });
  app.post("/pay", { preHandler: hook }, () => ({ paid: true }));
  const address = await app.listen({ port: 0, host: "127.0.0.1" });
  const pay = async (headers: Record<string, string>): Promise<[number, string]> => {
    const answer = await fetch(`${address}/pay`, { method: "POST", headers: { "X-Key": "a", ...headers } });
    return [answer.status, await answer.text()];
  };
  try {
    expect(await pay({})).toEqual([200, '{"paid":true}']);
    expect(await pay({ "X-Reason": "1" })).toEqual([500, ""]);
    expect(await pay({})).toEqual([200, '{"paid":true}']);
    expect(warn).toHaveBeenCalledTimes(1);
  } finally {
    await app.close();
  }
});
