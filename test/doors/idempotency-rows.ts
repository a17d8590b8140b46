import { createHash } from "node:crypto";
import { memoryIdempotencyStore, type IdempotencyStore } from "@countersign/idempotency";
import type { IdempotencyGuardOptions } from "@countersign/idempotency-guard";
import { problem, unavailable, type ExactAnswer } from "./answers.ts";
import { appError, handlerType, type Handler, type IdempotencyScene } from "./scene.ts";
import type { Row } from "./row.ts";
import { steps } from "./store-steps.ts";

const path = "/refunds";
const key = "refund-1";
const body = JSON.stringify({ key, amount: "10.00" });

interface State {
  readonly title: string;
  readonly answer: ExactAnswer;
  readonly body?: string;
  readonly options?: Partial<IdempotencyGuardOptions<object>>;
  readonly handler?: Handler;
  readonly before?: (store: IdempotencyStore, fingerprint: string) => unknown;
  readonly storeOf?: (inner: IdempotencyStore) => IdempotencyStore;
  readonly code?: string;
  readonly recorded: "free" | "run" | "done" | "held";
}

const down = (): never => {
  throw new Error("down");
};
const said = (status: number): ExactAnswer => ({
  status,
  headers: { "content-type": handlerType },
  body: `the handler says ${status}`,
});
const answering =
  (status: number): Handler =>
  () => ({ status, body: `the handler says ${status}` });
const claimed = (store: IdempotencyStore, fingerprint: string): unknown =>
  store.claim(key, { token: "another", fingerprint, leaseMs: 30_000, recovery: "hold" });

const states: readonly State[] = [
  ...[200, 201, 202].map((status): State => ({
    title: `a refund whose handler answers ${status}`,
    handler: answering(status),
    answer: said(status),
    recorded: "done",
  })),
  ...[302, 400, 404, 422, 429, 500, 503].map((status): State => ({
    title: `a refund whose handler answers ${status}`,
    handler: answering(status),
    answer: said(status),
    recorded: "free",
  })),
  {
    title: "a refund whose handler answers 409",
    handler: answering(409),
    answer: problem(500),
    recorded: "free",
  },
  {
    title: "a refund whose handler throws",
    handler: down,
    answer: { status: appError.status, headers: { "content-type": appError.type }, body: appError.body },
    recorded: "free",
  },
  {
    title: "a refund whose commit is not confirmed",
    handler: answering(200),
    storeOf: (inner) => ({ ...steps(inner), complete: down }),
    answer: unavailable(),
    recorded: "run",
  },
  {
    title: "a refund that was done",
    before: (store, fingerprint) => {
      void claimed(store, fingerprint);
      return store.complete(key, "another");
    },
    answer: problem(409, { code: "already-processed" }),
    code: "already-processed",
    recorded: "done",
  },
  {
    title: "a refund that was done with another body",
    before: (store) => {
      void claimed(store, "another");
      return store.complete(key, "another");
    },
    answer: problem(409, { code: "idempotency-key-reused" }),
    code: "idempotency-key-reused",
    recorded: "done",
  },
  {
    title: "a refund under way",
    before: claimed,
    answer: unavailable(5, "in-flight"),
    code: "in-flight",
    recorded: "run",
  },
  {
    title: "a refund that is held",
    before: (store, fingerprint) => {
      void claimed(store, fingerprint);
      return store.hold(key, "another", "an operator decides");
    },
    answer: unavailable(300, "held"),
    code: "held",
    recorded: "held",
  },
  {
    title: "a refund with a store that throws",
    storeOf: (inner) => ({ ...steps(inner), claim: down }),
    answer: unavailable(),
    code: "idempotency-store-unavailable",
    recorded: "free",
  },
  ...(
    [
      ["missing", undefined],
      ["missing", null],
      ["missing", ""],
      ["invalid", 1],
      ["invalid", "x".repeat(513)],
      ["invalid", "a\u0000b"],
    ] as const
  ).map(([what, value]): State => ({
    title: `a refund with the key ${value === undefined ? "undefined" : JSON.stringify(value).slice(0, 20)}`,
    body: JSON.stringify({ key: value }),
    answer: problem(400, { code: `idempotency-key-${what}` }),
    code: `idempotency-key-${what}`,
    recorded: "free",
  })),
];

/** `idempotencyGuard` alone, around a handler, with the key in the body. */
export const idempotencyRows: readonly Row[] = states.map(
  ({ title, answer, code, recorded, body: text = body, ...state }): Row => ({
    title,
    answer,
    recorded,
    ...(code !== undefined && { code }),
    scene: () => sceneOf(state),
    request: () => ({
      method: "POST",
      path,
      headers: ["Content-Type", "application/json"],
      body: Buffer.from(text),
    }),
  }),
);

function sceneOf({
  options,
  handler = answering(200),
  before,
  storeOf,
}: Omit<State, "title" | "answer" | "recorded">): IdempotencyScene {
  const inner = memoryIdempotencyStore({ max: 10 });
  before?.(inner, createHash("sha256").update(body).digest("base64url"));
  return {
    kind: "idempotency",
    path,
    options: { store: storeOf?.(inner) ?? inner, waitMs: 0, ...options },
    handler,
    trace: { codes: [], ran: 0, recorded: () => inner.read(key)?.state ?? "free" },
  };
}
