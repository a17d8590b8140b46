// What a guard whose handler gets the transaction answers, at every adapter and on every engine.
import { GuardError } from "@countersign/core";
import { answer, refuse, type IdempotencyTransactionOptions } from "@countersign/idempotency-guard";
import type { TransactionMode } from "@countersign/idempotency";
import type { EngineName, Tables, Tx } from "./payments/engines.ts";

type Options = IdempotencyTransactionOptions<Tx, TransactionMode, HasUrl>;

export type GuardOptions = Omit<Options, "key" | "fingerprint"> &
  Partial<Pick<Options, "key" | "fingerprint">>;

interface HasUrl {
  readonly url?: string | undefined;
}

export const origin = "http://platform.example";
export const keyOf = ({ url = "" }: HasUrl): string | undefined =>
  new URL(url, origin).searchParams.get("key") || undefined;
export const fingerprint = ({ url = "" }: HasUrl): string =>
  new URL(url, origin).searchParams.get("payload") ?? "f";

export type GuardAdapterName = "express 5" | "express 4" | "node:http" | "fastify" | "fetch" | "hono";

/** Where errors, and what passes, go to what the app has behind the guard. */
const withErrorHandlers: readonly GuardAdapterName[] = ["express 5", "express 4", "node:http", "fastify"];

export interface GuardRow {
  readonly title: string;
  /** Default: every adapter. */
  readonly on?: readonly GuardAdapterName[];
  /** Default: every engine. */
  readonly engines?: readonly EngineName[];
  readonly replay?: Omit<NonNullable<GuardOptions["replay"]>, "answers">;
  /** What the store of answers does behind its first write. */
  readonly afterAnswer?: (tables: Tables, tx: Tx) => unknown;
  readonly notices?: readonly string[];
  /** How many answers were written, and how many of these are there at the end. Default none. */
  readonly kept?: readonly [written: number, found: number];
  readonly options?: Partial<GuardOptions>;
  /** What the handler does behind its write, at its first call. Later it returns nothing. */
  readonly first?: () => unknown;
  readonly appStatus?: number;
  /** Method, then key. */
  readonly sends: readonly string[];
  /** Status, then the body; `again` stands for Idempotency-Replayed, before a content type. */
  readonly answers: readonly RegExp[];
  readonly paid: number;
}

/** An error of the app's. */
export const fail = (): never => {
  throw new Error("the app failed");
};

// As each engine says that the whole transaction has to run again.
const conflict = Object.assign(new Error("the app's rival was first"), {
  code: "40001",
  errno: 1213,
  cause: Object.assign(new Error("busy"), { code: "SQLITE_BUSY" }),
});

/** Throws a refusal with any status, as one is that the app's code has written itself. */
const refusing = (status: number) => (): never => {
  const error = new GuardError({ status: 422, code: "already-there", message: "the row is there" });
  throw Object.assign(error, { status });
};

const already = refusing(409);

/** What reads a request, and throws for the key `refused`. */
const optionRows = (
  [
    ["key", { key: (request) => (keyOf(request) === "refused" ? already() : keyOf(request)) }],
    ["fingerprint", { fingerprint: (request) => (keyOf(request) === "refused" ? already() : "f") }],
    ["fingerprint", { fingerprint: async (request) => (keyOf(request) === "refused" ? already() : "f") }],
  ] satisfies readonly (readonly [string, Partial<GuardOptions>])[]
).map(([name, options]): GuardRow => ({
  title: `with an option ${name} that refuses with 409: no key is claimed`,
  options,
  sends: ["POST refused", "POST k"],
  answers: [/^500 /, /^200 $/],
  paid: 1,
}));

const replayRows: readonly GuardRow[] = [
  {
    title: "with replay",
    replay: {},
    first: () => answer(201, { id: 7 }),
    sends: ["POST k", "POST k", "POST k&payload=other", "POST l"],
    answers: [
      /^201 {"id":7}$/,
      /^201 again application\/json; charset=utf-8 {"id":7}$/,
      /^409 .*idempotency-key-reused/,
      /^200 $/,
    ],
    paid: 2,
    notices: ["idempotency-key-reused"],
    kept: [2, 2],
  },
  {
    title: "with replay of an empty answer, sealed",
    replay: { encryptionKeys: [{ id: "a", secret: Buffer.from([...Array(32).keys()]).toString("base64") }] },
    options: { doneStatus: 204 },
    sends: ["POST k", "POST k"],
    // Hono's server gives every answer without a type this one.
    answers: [/^200 $/, /^200 again (?:text\/plain; charset=UTF-8)? $/],
    paid: 1,
    kept: [1, 1],
  },
  {
    title: "with replay of an answer beyond the limit, which is done without it",
    replay: { limit: 10 },
    options: { doneStatus: 204 },
    first: () => answer(201, { id: "x".repeat(20) }),
    sends: ["POST k", "POST k"],
    answers: [/^201 {"id":"x+"}$/, /^204 $/],
    paid: 1,
    notices: ["answer-not-kept"],
  },
  {
    title: "with replay of a refusal, which is not kept",
    replay: {},
    first: () => {
      throw refuse("too-late", { status: 422 });
    },
    sends: ["POST k", "POST k", "POST k"],
    answers: [/^422 .*too-late/, /^200 $/, /^200 again/],
    paid: 1,
    kept: [1, 1],
  },
  {
    title: "with replay and a conflict behind the answer, which takes it back and runs again",
    replay: {},
    first: () => answer(201, { id: 7 }),
    afterAnswer() {
      throw conflict;
    },
    sends: ["POST k", "POST k"],
    answers: [/^200 $/, /^200 again/],
    paid: 1,
    kept: [2, 1],
  },
  {
    title: "with replay and a store of answers that fails: nothing commits, and the retry pays",
    replay: {},
    first: () => answer(201, { id: 7 }),
    afterAnswer: fail,
    sends: ["POST k", "POST k", "POST k"],
    answers: [/^503 {"type"/, /^200 $/, /^200 again/],
    paid: 1,
    kept: [2, 1],
  },
  {
    title: "with replay and a line that is lost before COMMIT: neither key nor answer",
    engines: ["postgresql", "mariadb"],
    replay: {},
    first: () => answer(201, { id: 7 }),
    afterAnswer: (tables, tx) => tables.kill(tx),
    sends: ["POST k", "POST k", "POST k"],
    answers: [/^503 /, /^200 $/, /^200 again/],
    paid: 1,
    kept: [2, 1],
  },
];

export const guardRows: readonly GuardRow[] = [
  ...replayRows,
  ...optionRows,
  {
    title: "pays once",
    sends: ["POST k", "POST k", "POST l"],
    answers: [/^200 $/, /^409 .*already-processed/, /^200 $/],
    paid: 2,
  },
  {
    title: "with doneStatus",
    options: { doneStatus: 204 },
    sends: ["POST k", "POST k"],
    answers: [/^200 $/, /^204 $/],
    paid: 1,
  },
  {
    title: "with an answer",
    first: () => answer(201, { id: 7 }),
    sends: ["POST k", "POST k"],
    answers: [/^201 {"id":7}$/, /^409/],
    paid: 1,
  },
  {
    title: "with a refusal, which commits nothing and frees the key",
    first: () => {
      throw refuse("too-late", { status: 422 });
    },
    sends: ["POST k", "POST k"],
    answers: [/^422 .*too-late/, /^200 $/],
    paid: 1,
  },
  {
    title: "with an error, which commits nothing, frees the key and goes to the app",
    on: withErrorHandlers,
    first: fail,
    sends: ["POST k", "POST k"],
    answers: [/^500 failed$/, /^200 $/],
    paid: 1,
  },
  {
    title: "with an error, which commits nothing, frees the key and is answered",
    on: ["fetch", "hono"],
    first: fail,
    sends: ["POST k", "POST k"],
    answers: [/^500 {"type":"about:blank","title":"Internal Server Error","status":500}$/, /^200 $/],
    paid: 1,
  },
  {
    title: "without a key that may be sent",
    sends: [`POST ${"k".repeat(600)}`],
    answers: [/^400 .*idempotency-key-invalid/],
    paid: 0,
  },
  ...[200, 204, 409].map((appStatus): GuardRow => ({
    title: `in an app that answers ${appStatus} to errors`,
    appStatus,
    first: fail,
    sends: ["POST k", "POST k"],
    answers: [/^500 /, /^200 $/],
    paid: 1,
  })),
  {
    title: "in an app that answers 409 to errors, where 409 is not what a done key is answered",
    on: withErrorHandlers,
    options: { doneStatus: 204 },
    appStatus: 409,
    first: fail,
    sends: ["POST k", "POST k"],
    answers: [/^409 failed$/, /^200 $/],
    paid: 1,
  },
  ...[409, 200].map((status): GuardRow => ({
    title: `with a refusal of ${status}: nobody has paid`,
    first: refusing(status),
    sends: ["POST k", "POST k", "POST k"],
    answers: [/^500 /, /^200 $/, /^409 .*already-processed/],
    notices: ["handler-answered-409"],
    paid: 1,
  })),
  {
    title: "with a refusal of 409, where it is not what a done key is answered",
    options: { doneStatus: 204 },
    first: refusing(409),
    sends: ["POST k", "POST k"],
    answers: [/^409 .*already-there/, /^200 $/],
    paid: 1,
  },
  {
    title: "with a refusal of 409, where it says that the first attempt runs",
    options: { inFlightStatus: 409 },
    first: refusing(409),
    sends: ["POST k", "POST k"],
    answers: [/^409 .*already-there/, /^200 $/],
    paid: 1,
  },
  {
    title: "with exempt methods, which go on to what comes behind",
    on: withErrorHandlers,
    options: { methods: ["POST"] },
    sends: ["GET k", "POST k", "GET k"],
    answers: [/^200 passed$/, /^200 $/, /^200 passed$/],
    paid: 1,
  },
  {
    title: "without a key, which is not required",
    on: withErrorHandlers,
    options: { required: false },
    sends: ["POST &", "POST k"],
    answers: [/^200 passed$/, /^200 $/],
    paid: 1,
  },
];
