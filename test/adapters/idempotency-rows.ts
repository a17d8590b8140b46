import { createHash } from "node:crypto";
import {
  memoryAnswerStore,
  memoryIdempotencyStore,
  type AnswerStore,
  type IdempotencyStore,
} from "@countersign/idempotency";
import type { IdempotencyGuardOptions } from "@countersign/idempotency-guard";
import type { KeptAnswer } from "@countersign/idempotency-guard/internal";
import { writeRecord } from "../../packages/checks/idempotency-guard/dist/answer-record.js";
import { problem, unavailable, type ExactAnswer } from "./answers.ts";
import { bothKeys, handlerType, showKeys, type Handler, type IdempotencyScene } from "./scene.ts";
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
  readonly ran?: number;
  readonly recorded: "free" | "running" | "done" | "held";
}

/** The answers of keys that are done; `another` is the attempt that every row's first request was. */
function answersOf(record: KeptAnswer): { readonly answers: AnswerStore; readonly callers: "shared" } {
  const answers = memoryAnswerStore();
  answers.keep("another", writeRecord(record, { key, token: "another" }, []));
  return { answers, callers: "shared" };
}

const done = (store: IdempotencyStore, fingerprint: string): unknown => {
  void claimed(store, fingerprint);
  return store.complete(key, "another");
};

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
  {
    title: "a refund whose handler shows both of its keys",
    options: { scope: "refund" },
    handler: showKeys,
    answer: bothKeys(key, `refund:${key}`),
    recorded: "done",
  },
  ...(
    [
      [200, "done"],
      [302, "done"],
      [500, "held"],
    ] as const
  ).map(([status, recorded]): State => ({
    title: `a refund whose handler answers ${status}`,
    handler: answering(status),
    answer: said(status),
    recorded,
  })),
  {
    title: "a refund whose handler answers 409",
    handler: answering(409),
    answer: problem(500),
    recorded: "held",
  },
  {
    title: "a refund whose commit is not confirmed",
    options: { scope: "refund" },
    handler: answering(200),
    storeOf: (inner) => ({ ...steps(inner), complete: down }),
    answer: unavailable(),
    recorded: "running",
  },
  {
    title: "a refund that was done",
    before: done,
    answer: problem(409, { code: "already-processed" }),
    code: "already-processed",
    recorded: "done",
  },
  {
    title: "a refund that was done with another body",
    before: (store) => done(store, "another"),
    answer: problem(409, { code: "idempotency-key-reused" }),
    code: "idempotency-key-reused",
    recorded: "done",
  },
  {
    title: "a refund that was done, whose answer is given again",
    before: done,
    options: {
      replay: answersOf({
        status: 201,
        headers: [
          ["content-type", handlerType],
          ["location", "/refunds/1"],
          ["x-unlisted", "1"],
        ],
        body: Buffer.from("the first answer"),
      }),
    },
    answer: {
      status: 201,
      headers: { "content-type": handlerType, location: "/refunds/1", "idempotency-replayed": "true" },
      body: "the first answer",
    },
    ran: 0,
    recorded: "done",
  },
  {
    title: "a refund that was done, whose answer is not there",
    before: done,
    options: { replay: { answers: memoryAnswerStore(), callers: "shared" } },
    answer: problem(409, { code: "already-processed" }),
    code: "already-processed",
    recorded: "done",
  },
  {
    title: "a refund that was done, with a store of answers that throws",
    before: done,
    options: {
      replay: { answers: { ...steps(memoryIdempotencyStore()), keep: down, find: down }, callers: "shared" },
    },
    answer: unavailable(5, "answer-unavailable"),
    code: "answer-unavailable",
    recorded: "done",
  },
  ...([200, 204] as const).map((doneStatus): State => ({
    title: `a refund that was done, by doneStatus ${doneStatus}`,
    before: done,
    options: { doneStatus },
    answer: { status: doneStatus, headers: {}, body: "" },
    ran: 0,
    recorded: "done",
  })),
  {
    title: "a refund under way, by inFlightStatus",
    before: claimed,
    options: { inFlightStatus: 409 },
    answer: problem(409, { code: "in-flight" }, { "retry-after": "5" }),
    code: "in-flight",
    recorded: "running",
  },
  {
    title: "a refund by a method that is not guarded",
    before: done,
    options: { methods: ["PUT"] },
    answer: said(200),
    recorded: "done",
  },
  {
    title: "a refund without a key, where none is required",
    body: "{}",
    options: { required: false },
    answer: said(200),
    recorded: "free",
  },
  {
    title: "a refund under way",
    before: claimed,
    answer: unavailable(5, "in-flight"),
    code: "in-flight",
    recorded: "running",
  },
  ...(
    [
      ["missing", undefined],
      ["missing", ""],
      ["invalid", 1],
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
  ({ title, answer, code, recorded, ran, body: text = body, ...state }): Row => ({
    title,
    answer,
    recorded,
    ...(ran !== undefined && { ran }),
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
}: Omit<State, "title" | "answer" | "recorded" | "ran">): IdempotencyScene {
  const inner = memoryIdempotencyStore({ max: 10 });
  const storeKey = options?.scope === undefined ? key : `${options.scope}:${key}`;
  before?.(inner, createHash("sha256").update(body).digest("base64url"));
  return {
    kind: "idempotency",
    path,
    options: { store: storeOf?.(inner) ?? inner, waitMs: 0, ...options },
    handler,
    trace: { codes: [], ran: 0, recorded: () => inner.read(storeKey)?.state ?? "free" },
  };
}
