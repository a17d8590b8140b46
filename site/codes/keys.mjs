import { randomUUID } from "node:crypto";
import { setTimeout as wait } from "node:timers/promises";
import { idempotentRoute } from "@countersign/fetch";
import { idempotencyKeys, memoryAnswerStore, memoryIdempotencyStore } from "@countersign/idempotency";
import { idempotencyGuard, retryLater } from "@countersign/idempotency-guard";
import { rawBody } from "@countersign/raw-body";
import { answered, noticed, post, refusalOf } from "./provoke.mjs";

const paid = (_req, res) => void res.json({});
/** A route behind the guard. */
const route =
  (options = {}, handler = paid, before = rawBody()) =>
  (app) => {
    const store = memoryIdempotencyStore();
    const guard = idempotencyGuard({
      store,
      key: (req) => req.headers["idempotency-key"],
      retryAfterSeconds: 1,
      waitMs: 50,
      ...options,
    });
    app.post("/", before, guard, handler);
  };
const keyed = (more = {}) =>
  post({ headers: { "Idempotency-Key": "payout-1.funding-1.business-1", ...more.headers }, ...more.rest });
/** `store` with other methods in the place of some of its own. */
const instead = (store, methods) =>
  new Proxy(store, {
    get: (target, name) =>
      methods[name] ?? (typeof target[name] === "function" ? target[name].bind(target) : target[name]),
  });
const down = (store, method) =>
  instead(store, { [method]: () => Promise.reject(new Error("connect ECONNREFUSED 127.0.0.1:5432")) });

/** A store of answers of which one method fails. */
const lost = (method) => down(memoryAnswerStore(), method);

/** An owned key of a store whose methods `change` replaces, with short times. */
async function owned({ change = (store) => store, options = {} } = {}) {
  const plain = memoryIdempotencyStore();
  const owner = idempotencyKeys({
    factory: "idempotencyGuard",
    store: change(plain),
    leaseMs: 1000,
    storeTimeoutMs: 300,
    ...options,
  });
  const key = await owner.acquire({
    key: "payout-1.funding-1.business-1",
    fingerprint: "f",
    token: randomUUID(),
  });
  return { key, store: plain, owner };
}

export const refusalsOfKeys = {
  "already-processed": answered(route(), [keyed(), keyed()]),
  "idempotency-key-reused": answered(route(), [keyed(), keyed({ rest: { body: "{}" } })]),
  "in-flight": answered(
    route({ waitMs: 20, pollMs: 10 }, (_req, res) => void setTimeout(() => res.json({}), 1500)),
    [],
    { twice: keyed() },
  ),
  "handler-without-response": () =>
    refusalOf("idempotencyGuard", async () => {
      let refused;
      const options = {
        store: memoryIdempotencyStore(),
        key: () => "payout-1.funding-1.business-1",
        onReject: (error) => void (refused = error),
      };
      const request = new Request("https://platform.example/", { method: "POST", body: "{}" });
      await idempotentRoute(options, () => {})(request);
      throw refused;
    }),
  "retry-later": answered(
    route({}, (_req, _res, next) => next(retryLater("the bank opens at eight"))),
    [keyed()],
  ),
  held: answered(
    route({}, (req, _res, next) => {
      req.idempotency.hold("the bank did not answer");
      next(new Error("time-out"));
    }),
    [keyed(), keyed()],
  ),
  "answer-unavailable": answered(route({ replay: { answers: lost("find"), callers: "shared" } }), [
    keyed(),
    keyed(),
  ]),
  "idempotency-store-unavailable": answered(
    route({ store: down(memoryIdempotencyStore(), "claim") }),
    keyed(),
  ),
  "idempotency-lost": answered((app) => {
    const store = memoryIdempotencyStore();
    route({ store, leaseMs: 1_000, storeTimeoutMs: 500 }, async (req) => {
      const { storeKey, token, signal } = req.idempotency;
      store.release(storeKey, token);
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      signal.throwIfAborted();
    })(app);
  }, keyed()),
  draining: answered((app) => {
    const guard = idempotencyGuard({
      store: memoryIdempotencyStore(),
      key: (req) => req.headers["idempotency-key"],
    });
    void guard.drain();
    app.post("/", rawBody(), guard, paid);
  }, keyed()),
  "idempotency-key-missing": answered(route(), post()),
  "idempotency-key-invalid": answered(route(), keyed({ headers: { "Idempotency-Key": "k".repeat(600) } })),
  "fingerprint-missing": answered(
    route({}, paid, (_req, _res, next) => next()),
    keyed(),
  ),
  "fingerprint-invalid": answered(route({ fingerprint: () => ({}) }), keyed()),
  "fingerprint-unavailable": answered(
    route({ fingerprint: () => new Promise(() => {}), storeTimeoutMs: 100 }),
    keyed(),
  ),
  "idempotency-guard-twice": answered((app) => {
    const guard = idempotencyGuard({
      store: memoryIdempotencyStore(),
      key: (req) => req.headers["idempotency-key"],
    });
    app.post("/", rawBody(), guard, guard, paid);
  }, keyed()),
};

export const noticesOfKeys = {
  "answer-not-kept": noticed("answer-not-kept", () =>
    answered(route({ replay: { answers: lost("keep"), callers: "shared" } }), [keyed(), keyed()])(),
  ),
  "answer-unreadable": noticed("answer-unreadable", () => {
    const answers = instead(memoryAnswerStore(), { find: () => Buffer.from("?") });
    return answered(route({ replay: { answers, callers: "shared" } }), [keyed(), keyed()])();
  }),
  "answered-before-handler": noticed("answered-before-handler", () =>
    answered(
      (app) => {
        const store = memoryIdempotencyStore();
        const slow = instead(store, {
          claim: async (...claim) => {
            await wait(50);
            return store.claim(...claim);
          },
        });
        app.use((_req, res, next) => {
          setTimeout(() => res.status(504).end(), 10);
          next();
        });
        route({ store: slow })(app);
      },
      keyed(),
      { refused: false },
    )().then(() => wait(200)),
  ),
  "answer-unsendable": noticed("answer-unsendable", () =>
    answered(
      route({}, (_req, res) => void res.writeHead(200, { "X-Note": "line\nfeed" }).end("paid")),
      keyed(),
      { refused: false },
    )(),
  ),
  "completion-delayed": noticed("completion-delayed", async () => {
    const { key } = await owned({ change: (store) => down(store, "complete") });
    await key.complete();
  }),
  "completion-lost": noticed("completion-lost", async () => {
    const { key } = await owned({ change: (store) => instead(store, { complete: () => "lost" }) });
    await key.complete();
  }),
  "hold-lost": noticed("hold-lost", async () => {
    const { key } = await owned({ change: (store) => instead(store, { hold: () => "lost" }) });
    await key.hold("the bank may have paid");
  }),
  "lease-lost": noticed("lease-lost", async () => {
    const { key } = await owned({ change: (store) => instead(store, { heartbeat: () => "lost" }) });
    void key.signal;
  }),
  "lease-expired": noticed("lease-expired", async () => {
    await owned({ change: (store) => down(store, "heartbeat") });
  }),
  "handler-timeout": noticed("handler-timeout", async () => {
    await owned({ options: { handlerTimeoutMs: 1000 } });
  }),
};
