// With replay a guard has to know whose answer it repeats, at every adapter and in both modes: key and payload of a request are no secret
// between callers.
import { idempotencyHook } from "@countersign/fastify";
import { idempotentRoute } from "@countersign/fetch";
import { memoryAnswerStore, memoryIdempotencyStore } from "@countersign/idempotency";
import { idempotencyGuard, idempotencyKeyHeader } from "@countersign/idempotency-guard";
import { createAnswers, createStores } from "@countersign/store-sql";
import { describe, expect, test } from "@jest/globals";
import Database from "libsql";
import { guardAdapters } from "./guard-adapters.ts";
import { origin, type GuardOptions } from "./guard-rows.ts";

const ofCaller = idempotencyKeyHeader<object>({ caller: () => "user-1" });
const ofAnybody = idempotencyKeyHeader<object>();
const own = { key: () => "k" };
type Callers = NonNullable<GuardOptions["replay"]>["callers"];

const cases: readonly (readonly [string, object, Callers, RegExp | undefined])[] = [
  ["a key of its own", own, undefined, /option replay\.callers is required/],
  [
    "the field's key without caller",
    ofAnybody,
    undefined,
    /option replay\.callers is required, .*option caller/,
  ],
  ["another key over the one with caller", { ...ofCaller, ...own }, undefined, /replay\.callers is required/],
  ["an unknown word", own, "all" as Callers, /option replay\.callers must be "apart" or "shared"/],
  [
    "shared answers beside a caller",
    ofCaller,
    "shared",
    /option replay\.callers must not be "shared" beside/,
  ],
  ["the field's key with caller", ofCaller, undefined, undefined],
  ["the field's key with caller, said again", ofCaller, "apart", undefined],
  ["a key of its own that holds the caller", own, "apart", undefined],
  ["a key of its own for all callers", own, "shared", undefined],
  ["the field's key for all callers", ofAnybody, "shared", undefined],
];

const expectError = (error: unknown, factory: RegExp, expected: RegExp | undefined): void => {
  if (expected === undefined) return expect(error).toBeUndefined();
  expect(error).toBeInstanceOf(TypeError);
  expect(error).toMatchObject({ message: expect.stringMatching(factory) });
  expect(error).toMatchObject({ message: expect.stringMatching(expected) });
};

describe.each(guardAdapters)("replay in one transaction on $name", (adapter) => {
  test.each(cases)("is checked with %s", async (_title, key, callers, expected) => {
    const database = new Database(":memory:");
    const options: GuardOptions = {
      ...key,
      stores: createStores({ database, pruneIntervalMs: 0 }) as never,
      handle: () => undefined,
      replay: { answers: createAnswers({ database, pruneIntervalMs: 0 }), callers },
    };
    const opened = await adapter.open(options, 500).catch((error: unknown) => error);
    const isOpen = typeof opened === "object" && opened !== null && "close" in opened;
    if (isOpen && typeof opened.close === "function") await opened.close();
    expectError(
      isOpen ? undefined : opened,
      /^(?:idempotencyGuard|idempotencyHook|idempotentRoute): /,
      expected,
    );
  });
});

describe.each<[string, (options: never) => unknown]>([
  ["idempotencyGuard", idempotencyGuard],
  ["idempotencyHook", idempotencyHook],
  ["idempotentRoute", (options) => idempotentRoute(options, () => new Response("paid"))],
])("replay in lease mode of %s", (name, build) => {
  test.each(cases)("is checked with %s", (_title, key, callers, expected) => {
    let error: unknown;
    try {
      build({
        store: memoryIdempotencyStore(),
        ...key,
        replay: { answers: memoryAnswerStore(), callers },
      } as never);
    } catch (thrown) {
      error = thrown;
    }
    expectError(error, new RegExp(`^${name}: `), expected);
  });
});

test("gives an answer to the caller of its key alone, and to all where they share answers", async () => {
  const answersTo = async (more: object): Promise<(string | null)[]> => {
    const route = idempotentRoute(
      { store: memoryIdempotencyStore(), ...ofAnybody, ...more },
      (request) => new Response(request.headers.get("authorization"), { status: 201 }),
    );
    const answers: string[] = [];
    for (const who of ["alice", "bob", "alice"]) {
      const headers = { authorization: who, "idempotency-key": '"k"' };
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      answers.push(await (await route(new Request(origin, { method: "POST", headers, body: "{}" }))).text());
    }
    return answers;
  };
  const caller = ({ headers }: Request) => headers.get("authorization") ?? undefined;
  const apart = { ...idempotencyKeyHeader<Request>({ caller }), replay: { answers: memoryAnswerStore() } };
  expect(await answersTo(apart)).toEqual(["alice", "bob", "alice"]);
  const shared = { replay: { answers: memoryAnswerStore(), callers: "shared" } };
  expect(await answersTo(shared)).toEqual(["alice", "alice", "alice"]);
});
