import { describe, expect, test } from "@jest/globals";
import {
  memoryIdempotencyStore,
  type IdempotencyDecision,
  type IdempotencyStore,
} from "@countersign/idempotency";
import {
  bytesOf,
  eachTest,
  faultyStore,
  frameworks,
  listen,
  payoutGuard,
  platform,
  sleep,
  type Handler,
} from "./kit.ts";

const notices = eachTest();

const stores: readonly (readonly [string, () => IdempotencyStore])[] = [
  ["synchronous store", () => memoryIdempotencyStore()],
  ["asynchronous store", () => faultyStore()],
];
// The kind of store makes no difference between the frameworks: the harder one is enough for the second.
const cases = frameworks.flatMap(([name, framework], index) =>
  stores.slice(index).map(([kind, createStore]) => ({ name: `${name}, ${kind}`, framework, createStore })),
);

describe.each(cases)("idempotencyGuard on $name", ({ framework, createStore }) => {
  test("holds the key when its handler works on after next(), and the app's 404 answers", async () => {
    const store = createStore();
    let runs = 0;
    const app = await platform(framework, { store, waitMs: 0 }, (_req, _res, next) => {
      runs += 1;
      next();
    });
    expect((await app.pay()).status).toBe(404);
    expect(await store.read("op.a.b")).toMatchObject({
      state: "held",
      reason: expect.stringContaining("passed the request on, and 404 was responded"),
    });
    expect(await app.pay()).toMatchObject({ status: 503, code: "held" });
    expect(runs).toBe(1);
  });

  test.each<[name: string, recovery: "hold" | "rerun", handler: Handler | undefined]>([
    ["a handler's own 404", "hold", (_req, res) => void res.sendStatus(404)],
    ["a 404 where no handler follows the guard", "hold", undefined],
    ["next() under rerun", "rerun", (_req, _res, next) => next()],
  ])("frees the key after %s", async (_name, recovery, handler) => {
    const store = createStore();
    const app = framework();
    app.use(bytesOf(framework));
    app.post("/pay", payoutGuard({ store, recovery }), ...(handler === undefined ? [] : [handler]));
    const { pay } = await listen(app);
    expect((await pay()).status).toBe(404);
    expect((await pay()).status).toBe(404);
    expect(await store.read("op.a.b")).toBeUndefined();
  });

  // As res.status() of Express 4 leaves them on the response; Node makes whole numbers of them.
  test.each<[given: unknown, sent: number]>([
    ["409", 500],
    [409.5, 500],
    ["0x199", 500],
    ["422", 422],
    ["200", 200],
  ])("decides about the status that Node makes of %p", async (given, sent) => {
    const store = createStore();
    const app = await platform(framework, { store }, (_req, res) => {
      Object.assign(res, { statusCode: given }).end();
    });
    expect((await app.pay()).status).toBe(sent);
    expect((await store.read("op.a.b"))?.state).toBe(
      sent === 200 ? "done" : sent === 500 ? "held" : undefined,
    );
    expect(notices.codes()).toEqual(sent === 500 ? ["handler-answered-409"] : []);
  });

  test("holds the key of a failure after hold(), until the operator decides", async () => {
    const store = createStore();
    let runs = 0;
    const app = await platform(framework, { store, heldRetryAfterSeconds: 99 }, (req, res) => {
      runs += 1;
      req.idempotency?.hold("bank timed out");
      if (runs === 1) throw new Error("bank timed out");
      res.json({});
    });
    expect((await app.pay()).status).toBe(500);
    const second = await app.pay({ body: "2" });
    expect(second).toMatchObject({ status: 503, code: "held" });
    expect(second.headers["retry-after"]).toBe("99");
    expect(notices.codes()).toEqual(["idempotency-key-reused", "held"]);
    expect(await store.read("op.a.b")).toMatchObject({ state: "held", reason: "bank timed out" });
    expect(await store.resolve("op.a.b", "released", await decisionOn(store))).toBe("ok");
    // An explicit 2xx outweighs the hold().
    expect((await app.pay()).status).toBe(200);
    expect(await app.pay()).toMatchObject({ status: 409, code: "already-processed" });
  });

  test("gives the handler key, fence, token and a quiet signal", async () => {
    const app = await platform(framework, { store: createStore() }, (req, res) => {
      const { key, fence, token, signal } = req.idempotency ?? {};
      res.status(422).json({ key, fence, token, aborted: signal?.aborted });
    });
    const first = JSON.parse((await app.pay()).body) as { readonly fence: number };
    const second: unknown = JSON.parse((await app.pay()).body);
    expect(first).toEqual({
      key: "op.a.b",
      fence: expect.any(Number),
      token: expect.stringMatching(/^[0-9a-f-]{36}$/),
      aborted: false,
    });
    expect(second).toMatchObject({ fence: first.fence + 1 });
  });

  test.each([{ reason: "" }, { reason: 7 as unknown as string }])(
    "refuses the hold reason $reason",
    async ({ reason }) => {
      const app = await platform(framework, { store: createStore() }, (req, res) => {
        req.idempotency?.hold(reason);
        res.json({});
      });
      expect((await app.pay()).body).toContain("TypeError: req.idempotency.hold");
    },
  );

  test("cuts a long hold reason to what every store takes", async () => {
    const store = createStore();
    const app = await platform(framework, { store }, (req, res) => {
      req.idempotency?.hold("r".repeat(300));
      res.status(500).end();
    });
    await app.pay();
    expect(await store.read("op.a.b")).toMatchObject({ state: "held", reason: "r".repeat(256) });
  });

  test("refuses a hold() after the response has ended", async () => {
    let error: unknown;
    const app = await platform(framework, { store: createStore() }, (req, res) => {
      res.status(500).end();
      try {
        req.idempotency?.hold("late");
      } catch (thrown) {
        error = thrown;
      }
    });
    await app.pay();
    expect(error).toMatchObject({ message: expect.stringContaining("ended already") });
  });
});

describe.each(frameworks)("idempotencyGuard on %s", (_name, framework) => {
  test("answers 503 when the lease expired, and runs no handler under recovery hold", async () => {
    const store = memoryIdempotencyStore();
    store.claim("op.a.b", { token: "dead", fingerprint: "f", leaseMs: 1, recovery: "hold" });
    await sleep(5);
    const app = await platform(framework, { store }, (_req, res) => res.json({}));
    const answer = await app.pay();
    expect(answer).toMatchObject({ status: 503, code: "held" });
    expect(answer.headers["retry-after"]).toBe("300");
    expect(notices.codes()).toContain("held");
    store.resolve("op.a.b", "released", await decisionOn(store));
    expect((await app.pay()).status).toBe(200);
  });

  test("runs with a higher fence when the lease expired under recovery rerun", async () => {
    const store = memoryIdempotencyStore();
    store.claim("op.a.b", { token: "dead", fingerprint: "f", leaseMs: 1, recovery: "rerun" });
    const { fence } = await decisionOn(store);
    await sleep(5);
    const app = await platform(framework, { store, recovery: "rerun" }, (req, res) =>
      res.json({ fence: req.idempotency?.fence }),
    );
    expect(await app.pay()).toMatchObject({ status: 200, body: `{"fence":${fence + 1}}` });
  });

  test("refuses to run twice for one request", async () => {
    const store = memoryIdempotencyStore();
    const second = payoutGuard({});
    const app = await platform(framework, { store }, (req, res, next) => second(req, res, next));
    expect((await app.pay()).status).toBe(500);
    expect(store.read("op.a.b")).toBeUndefined();
  });
});

async function decisionOn(store: IdempotencyStore): Promise<IdempotencyDecision> {
  const record = await store.read("op.a.b");
  if (record === undefined) throw new Error("there must be a record to decide about");
  return record;
}
