import { appError, bothKeys, handlerType, showKeys, type Handler } from "./scene.ts";
import { problem, unavailable, type ExactAnswer } from "./answers.ts";
import { onFetch } from "./payout-exceptions.ts";
import { acknowledged, idempotencyKey, payoutScene, signPayout, type PayoutState } from "./payout-scene.ts";
import type { Row } from "./row.ts";
import { steps } from "./store-steps.ts";

type Before = NonNullable<PayoutState["before"]>;

const claimed: Before = (store, key, fingerprint) =>
  store.claim(key, { token: "another", fingerprint, leaseMs: 30_000, recovery: "hold" });
const paid: Before = (store, key, fingerprint) => {
  void claimed(store, key, fingerprint);
  return store.complete(key, "another");
};
const held: Before = (store, key, fingerprint) => {
  void claimed(store, key, fingerprint);
  return store.hold(key, "another", "an operator decides");
};
const withAnother =
  (before: Before): Before =>
  (store, key) =>
    before(store, key, "another payload");

const down = (): never => {
  throw new Error("down");
};
const late = (): Promise<never> => new Promise(() => {});
const failed: ExactAnswer = {
  status: appError.status,
  headers: { "content-type": appError.type },
  body: appError.body,
};
/** What a handler throws goes to the app, but at fetch: there the app could say "paid" unseen. */
const thrown: Pick<Row, "answer" | "except" | "ran"> = {
  answer: failed,
  ran: 1,
  except: onFetch("the route answers what its handler throws", { answer: problem(500), code: "no-code" }),
};
const answers =
  (status: number): Handler =>
  () => ({ status, body: `the handler says ${status}` });
const said = (status: number): ExactAnswer => ({
  status,
  headers: { "content-type": handlerType },
  body: `the handler says ${status}`,
});

type KeyRow = PayoutState & Omit<Row, "scene" | "request">;

const states: readonly KeyRow[] = [
  {
    title: "a key that was paid",
    before: paid,
    answer: problem(409, { code: "already-processed" }),
    recorded: "done",
  },
  {
    title: "a key that was paid with another payload",
    before: withAnother(paid),
    answer: problem(409, { code: "idempotency-key-reused" }),
    recorded: "done",
  },
  { title: "a key in flight", before: claimed, answer: unavailable(5, "in-flight"), recorded: "running" },
  {
    title: "a key in flight, after a wait",
    before: claimed,
    options: { idempotency: { waitMs: 20, pollMs: 5, retryAfterSeconds: 7 } },
    answer: unavailable(7, "in-flight"),
    recorded: "running",
  },
  { title: "a key that is held", before: held, answer: unavailable(300, "held"), recorded: "held" },
  {
    title: "a key that was paid, of a business that is gone",
    before: paid,
    options: { findBusiness: () => false },
    answer: problem(409, { code: "already-processed" }),
    recorded: "done",
  },
].map((row) => ({ code: String(codeIn(row.answer)), ran: 0, ...row }) as KeyRow);

/** A store that does not do one of its steps. */
const broken =
  (step: "claim" | "complete", how: () => unknown): NonNullable<PayoutState["storeOf"]> =>
  (inner) => ({ ...steps(inner), [step]: how });

const unsettled: readonly KeyRow[] = (["throws", "is late"] as const).flatMap((title): KeyRow[] => {
  const how = title === "throws" ? down : late;
  const options = { idempotency: { storeTimeoutMs: 20, leaseMs: 1_000 } };
  return [
    {
      title: `a store whose claim ${title}`,
      storeOf: broken("claim", how),
      options,
      answer: unavailable(),
      code: "idempotency-store-unavailable",
      ran: 0,
    },
    {
      title: `a 2xx whose record ${title}`,
      storeOf: broken("complete", how),
      options,
      answer: unavailable(),
      recorded: "running",
    },
  ];
});

/** Statuses that are often another service's: they say nothing of the payment. */
const relayed: ReadonlySet<number> = new Set([408, 425, 429]);

/** What the handler answers, and what becomes of the key. */
const handled: readonly KeyRow[] = [
  ...[200, 201, 202, 203, 206].map((status): KeyRow => ({
    title: `a handler that answers ${status}`,
    handler: answers(status),
    answer: said(status),
    recorded: "done",
  })),
  {
    title: "a handler that answers 204",
    handler: () => ({ status: 204 }),
    answer: { status: 204, headers: { "content-type": handlerType }, body: "" },
    recorded: "done",
  },
  ...[300, 302, 307, 400, 402, 403, 404, 408, 410, 418, 422, 423, 425, 429, 500, 501, 502, 503, 504].map(
    (status): KeyRow => ({
      title: `a handler that answers ${status}`,
      handler: answers(status),
      answer: said(status),
      recorded: status < 400 ? "done" : status >= 500 || relayed.has(status) ? "held" : "free",
    }),
  ),
  { title: "a handler that answers 409", handler: answers(409), answer: problem(500), recorded: "held" },
  { title: "a handler that throws", handler: down, ...thrown, recorded: "held" },
  { title: "a handler that rejects", handler: async () => down(), ...thrown, recorded: "held" },
  {
    title: "a handler that throws, in an app that answers 409",
    handler: down,
    appStatus: 409,
    ...thrown,
    answer: problem(500),
    recorded: "held",
  },
  ...[500, 503, 400, 404].map((status): KeyRow => ({
    title: `a handler that holds its key and answers ${status}`,
    handler: ({ idempotency }) => {
      idempotency.hold("the bank did not answer");
      return { status, body: `the handler says ${status}` };
    },
    answer: said(status),
    recorded: "held",
  })),
  {
    title: "a handler that holds its key and throws",
    handler: ({ idempotency }) => {
      idempotency.hold("the bank did not answer");
      throw new Error("down");
    },
    ...thrown,
    recorded: "held",
  },
  {
    title: "a handler that holds its key and answers 409",
    handler: ({ idempotency }) => {
      idempotency.hold("the bank did not answer");
      return { status: 409 };
    },
    answer: problem(500),
    recorded: "held",
  },
  {
    title: "a handler that holds its key and answers 200",
    handler: ({ idempotency }) => {
      idempotency.hold("the bank did not answer");
      return { status: 200, body: "acknowledged" };
    },
    answer: acknowledged,
    recorded: "done",
  },
];

const businesses: readonly KeyRow[] = [
  ...(
    [
      ["false", () => false],
      ["undefined later", async () => undefined],
    ] as const
  ).map(([title, findBusiness]): KeyRow => ({
    title: `a business for which findBusiness says ${title}`,
    options: { findBusiness },
    answer: problem(400, {
      code: "business-unknown",
      errors: [
        { pointer: "/beneficiary/iban", code: "business-unknown", detail: "matches no registered business" },
      ],
    }),
    code: "business-unknown",
    ran: 0,
    recorded: "free",
  })),
  ...(
    [
      ["rejects", async () => down()],
      ["is late", late],
    ] as const
  ).map(([title, findBusiness]): KeyRow => ({
    title: `a findBusiness that ${title}`,
    options: { findBusiness, lookupTimeoutMs: 20 },
    answer: unavailable(),
    code: "business-lookup-unavailable",
    ran: 0,
    recorded: "free",
  })),
  ...(
    [
      ["true", () => true],
      ["a business", async () => ({ id: "biz_1" })],
    ] as const
  ).map(([title, findBusiness]): KeyRow => ({
    title: `a business for which findBusiness says ${title}`,
    options: { findBusiness },
    answer: acknowledged,
    recorded: "done",
  })),
];

const shown: readonly KeyRow[] = [
  {
    title: "a payout whose handler shows both of its keys",
    handler: showKeys,
    answer: bothKeys(idempotencyKey, `payout:${idempotencyKey}`),
    recorded: "done",
  },
  {
    title: "a payout with a scope, whose handler shows both of its keys",
    options: { idempotency: { scope: "us" } },
    handler: showKeys,
    answer: bothKeys(idempotencyKey, `us:${idempotencyKey}`),
    recorded: "done",
  },
];

export const keyRows: readonly Row[] = [...shown, ...states, ...unsettled, ...handled, ...businesses].map(
  ({ options, handler, before, storeOf, appStatus, ...row }) => ({
    ...row,
    scene: payoutScene(defined({ options, handler, before, storeOf, appStatus })),
    request: () => signPayout(),
  }),
);

function defined(state: {
  readonly [Name in keyof PayoutState]: PayoutState[Name] | undefined;
}): PayoutState {
  return Object.fromEntries(Object.entries(state).filter(([, value]) => value !== undefined));
}

function codeIn(answer: Row["answer"]): unknown {
  return answer === "unknown-route" ? undefined : JSON.parse(answer.body).code;
}
