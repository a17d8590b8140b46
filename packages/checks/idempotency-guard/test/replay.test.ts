import { memoryAnswerStore, memoryIdempotencyStore, type AnswerStore } from "@countersign/idempotency";
import {
  idempotencyGuard,
  idempotencyKeyHeader,
  type IdempotencyGuardOptions,
} from "@countersign/idempotency-guard";
import type { ReplayOptions } from "../dist/replay.js";
import { onTraceEnd, traces } from "@countersign/core";
import { rawBody } from "@countersign/raw-body";
import { guardErrors } from "@countersign/express";
import { afterEach, describe, expect, jest, test } from "@jest/globals";
import {
  closePlatforms,
  collectNotices,
  eventually,
  frameworks,
  gate,
  listen,
  payoutGuard,
  platform,
} from "./kit.ts";
import { steps } from "../../../../test/adapters/store-steps.ts";
import { allowWarnings } from "@countersign/test-support/runs/expect-warning.ts";

afterEach(closePlatforms);

// TEST KEY.
const secret = Buffer.from(Array.from({ length: 32 }, (_, index) => index)).toString("base64");
const replayWith = (options: Partial<ReplayOptions> = {}): { replay: ReplayOptions } => ({
  replay: { answers: memoryAnswerStore(), callers: "shared", ...options },
});

describe.each(frameworks)("idempotencyGuard with replay on %s", (_version, framework) => {
  test("answers the second time as the first, without its handler", async () => {
    let ran = 0;
    const { pay } = await platform(
      framework,
      replayWith({ headers: ["X-Refund", "Link", "Content-Type"] }),
      (_req, res) => {
        ran += 1;
        res
          .status(201)
          .setHeader("X-Refund", ["a", "b"])
          .setHeader("Set-Cookie", "session=1")
          .setHeader("X-Other", "1");
        res.json({ ran });
      },
    );
    const first = await pay();
    expect([first.status, first.body, first.headers["set-cookie"]]).toEqual([
      201,
      '{"ran":1}',
      ["session=1"],
    ]);
    expect(first.headers["idempotency-replayed"]).toBeUndefined();
    const second = await pay();
    expect([second.status, second.body]).toEqual([201, '{"ran":1}']);
    expect(second.headers).toMatchObject({
      "idempotency-replayed": "true",
      "content-type": first.headers["content-type"],
      "content-length": "9",
      "x-refund": "a, b",
    });
    expect(second.headers["set-cookie"]).toBeUndefined();
    expect(second.headers["x-other"]).toBeUndefined();
    expect(ran).toBe(1);
    expect((await pay({ body: '{"amount":2}' })).code).toBe("idempotency-key-reused");
  });

  // Such as a time-out that streams its answer: what it has begun it ends, and the process goes on.
  test("leaves an answer alone that somebody has begun while the first one was looked up", async () => {
    const [begun, found] = [gate(), gate()];
    const answers = memoryAnswerStore();
    const find: AnswerStore["find"] = async (token) => {
      await begun.opened;
      found.open();
      return answers.find(token);
    };
    const app = framework();
    app.use(rawBody(), (req, res, next) => {
      next();
      if (req.headers["x-late"] === undefined) return;
      res.status(503).write("late, ");
      begun.open();
      void found.opened.then(() => setImmediate(() => res.end("and whole")));
    });
    const replay = { answers: { ...answersOf(answers), find }, callers: "shared" as const };
    app.post("/pay", payoutGuard({ replay }), (_req, res) => void res.send("paid"));
    app.use(guardErrors());
    const { pay } = await listen(app);
    expect((await pay()).status).toBe(200);
    expect(await pay({ headers: { "x-late": "1" } })).toMatchObject({ status: 503, body: "late, and whole" });
    expect(await pay()).toMatchObject({ status: 200, body: "paid" });
  });

  test("takes a body in pieces, in any form, and a head by writeHead", async () => {
    const { pay } = await platform(framework, replayWith(), (_req, res) => {
      res.setHeader("Content-Type", "text/plain");
      res.writeHead(200, "Fine", { "Content-Type": "application/x-a", Location: "/1" });
      res.write("61", "hex");
      res.write(Buffer.from("b"));
      res.write(new Uint8Array([99]));
      res.end("d", "latin1");
    });
    for (const replayed of [undefined, "true"]) {
      const { status, body, headers } = await pay();
      expect([status, body, headers["content-type"], headers.location]).toEqual([
        200,
        "abcd",
        "application/x-a",
        "/1",
      ]);
      expect(headers["idempotency-replayed"]).toBe(replayed);
    }
  });

  test("gives what waited for the first attempt its answer", async () => {
    const { opened, open } = gate();
    const { pay } = await platform(framework, { ...replayWith(), waitMs: 20_000 }, async (_req, res) => {
      await opened;
      res.json({ done: true });
    });
    const answers = [pay(), pay(), pay()];
    setTimeout(open, 60);
    const all = await Promise.all(answers);
    expect(all.map(({ status, body }) => `${status} ${body}`)).toEqual(Array(3).fill('200 {"done":true}'));
    expect(all.filter(({ headers }) => headers["idempotency-replayed"] === "true")).toHaveLength(2);
  });

  test.each<
    [string, (res: Parameters<Parameters<typeof platform>[2]>[1]) => unknown, Partial<ReplayOptions>]
  >([
    ["larger than the limit", (res) => res.send("x".repeat(11)), { limit: 10 }],
    [
      "larger than the limit in pieces",
      (res) => (res.write("x".repeat(6)), res.end("x".repeat(6))),
      { limit: 10 },
    ],
    [
      "of over a megabyte, which leaves before it is whole",
      (res) => (res.write("x".repeat(1_200_000)), res.end("y")),
      { limit: "1mb" },
    ],
    ["with a content coding", (res) => res.setHeader("Content-Encoding", "x-a").end("x"), {}],
    ["that is a part", (res) => res.status(206).end("x"), {}],
  ])("an answer %s leaves, and is 409 from then on", async (_name, answer, options) => {
    const notices = collectNotices();
    const { pay } = await platform(framework, replayWith(options), (_req, res) => void answer(res));
    const first = await pay();
    expect(first.status).toBeLessThan(300);
    expect(first.body).not.toBe("");
    expect(await pay()).toMatchObject({ status: 409, code: "already-processed" });
    expect(notices.codes()).toContain("answer-not-kept");
  });

  test("tells of each call of the store of answers while somebody listens", async () => {
    const told: string[] = [];
    const end = onTraceEnd(traces.store, ({ engine, step, outcome }) => {
      if (step.endsWith("-answer")) told.push(`${engine} ${step} ${outcome}`);
    });
    try {
      const answers = memoryAnswerStore();
      const nameless = { ...answersOf(answers), find: () => Promise.reject(new Error("down")) };
      const store = memoryIdempotencyStore();
      const serve = (kept: AnswerStore) =>
        platform(framework, { store, scope: "a", ...replayWith({ answers: kept }) }, (_req, res) => {
          res.send("paid");
        });
      const { pay } = await serve(answers);
      await pay();
      await pay();
      expect((await (await serve(nameless)).pay()).status).toBe(503);
    } finally {
      end();
    }
    expect(told).toEqual(["memory keep-answer ok", "memory find-answer ok", "other find-answer error"]);
  });

  test("keeps answers encrypted, and reads those of an older key", async () => {
    const answers = memoryAnswerStore();
    const store = memoryIdempotencyStore();
    const keep = jest.spyOn(answers, "keep");
    const serve = (ids: readonly string[]) =>
      platform(
        framework,
        {
          store,
          scope: "refund",
          replay: {
            answers,
            callers: "shared",
            encryptionKeys: ids.map((id) => ({
              id,
              secret: Buffer.from(secret, "base64").fill(id).toString("base64").replace(/^./, "A"),
            })),
          },
        },
        (_req, res) => void res.json({ secretWord: "swordfish" }),
      );
    const before = await serve(["old"]);
    await before.pay();
    const [[, record]] = keep.mock.calls as [[string, Buffer]];
    expect(record.includes("swordfish")).toBe(false);
    const rotated = await serve(["new", "old"]);
    expect(await rotated.pay()).toMatchObject({ status: 200, body: '{"secretWord":"swordfish"}' });
    const notices = collectNotices();
    const withoutOld = await serve(["new"]);
    // Never the handler again.
    expect(await withoutOld.pay()).toMatchObject({ status: 409, code: "already-processed" });
    expect(notices.codes()).toContain("answer-unreadable");
  });

  test("does not give a header again that the list has lost since", async () => {
    const answers = memoryAnswerStore();
    const store = memoryIdempotencyStore();
    const serve = (headers: readonly string[]) =>
      platform(
        framework,
        { store, scope: "a", replay: { answers, callers: "shared", headers } },
        (_req, res) => void res.setHeader("X-A", "1").end("x"),
      );
    await (await serve(["X-A"])).pay();
    expect((await (await serve(["X-A"])).pay()).headers["x-a"]).toBe("1");
    expect((await (await serve([])).pay()).headers["x-a"]).toBeUndefined();
  });

  test.each(["throws", "never answers"])(
    "an answer that the store does not take leaves, when it %s",
    async (how) => {
      const answers: AnswerStore = {
        ...answersOf(memoryAnswerStore()),
        keep: () => {
          if (how === "throws") throw new Error("full");
          return new Promise(() => undefined);
        },
      };
      const notices = collectNotices();
      let ran = 0;
      const { pay } = await platform(
        framework,
        { ...replayWith({ answers }), storeTimeoutMs: 50 },
        (_req, res) => {
          ran += 1;
          res.send("paid");
        },
      );
      expect(await pay()).toMatchObject({ status: 200, body: "paid" });
      expect(await pay()).toMatchObject({ status: 409, code: "already-processed" });
      expect([ran, notices.codes()]).toEqual([1, ["answer-not-kept"]]);
    },
  );
});

describe("I15: an answer is given again for the attempt alone that ended its key", () => {
  const [[, framework]] = frameworks;
  const done = (req: { idempotency?: { key: string; storeKey: string; token: string } | undefined }) =>
    req.idempotency;

  test("an attempt that lost its key leaves no answer to be found", async () => {
    const inner = memoryIdempotencyStore();
    const answers = memoryAnswerStore();
    const first = gate();
    const begun = gate();
    let ran = 0;
    const process = () =>
      platform(
        framework,
        {
          store: inner,
          scope: "orders",
          recovery: "rerun",
          leaseMs: 1_000,
          storeTimeoutMs: 500,
          waitMs: 0,
          replay: { answers, callers: "shared" },
        },
        async (req, res) => {
          ran += 1;
          const mine = ran;
          if (mine === 1) {
            // Its process stands still: an operator frees the key meanwhile.
            const { storeKey, token } = done(req) as { storeKey: string; token: string };
            inner.release(storeKey, token);
            begun.open();
            await first.opened;
          }
          res.send(`attempt ${mine}`);
        },
      );
    const [still, { pay }] = await Promise.all([process(), process()]);
    const slow = still.pay();
    await begun.opened;
    expect((await pay()).body).toBe("attempt 2");
    first.open();
    // Either a renewal has found the key lost before, or the completion does.
    allowWarnings(
      /^\[completion-lost\] .* key "orders:op\.a\.b" ended with success: it belongs to another attempt$/,
    );
    // It has kept its answer by now, and its record was refused.
    expect((await slow).status).toBe(503);
    expect((await pay()).body).toBe("attempt 2");
    expect(ran).toBe(2);
  });

  test("a key that an operator has ended has no answer, whatever its attempt has kept", async () => {
    const inner = memoryIdempotencyStore();
    const { store, fail } = failingComplete(inner);
    const { pay } = await platform(
      framework,
      { ...replayWith(), store },
      (_req, res) => void res.send("paid"),
    );
    const notices = collectNotices("op.a.b");
    fail(true);
    expect((await pay()).status).toBe(503);
    const record = inner.read("op.a.b");
    expect(record?.state).toBe("running");
    inner.hold("op.a.b", record?.token ?? "", "for the test");
    expect(inner.resolve("op.a.b", "done", { fence: record?.fence ?? 0 })).toBe("ok");
    fail(false);
    expect(await pay()).toMatchObject({ status: 409, code: "already-processed" });
    // The record is tried again in the background: what comes of it is not to be heard by the next test.
    await eventually(() => notices.codes().includes("completion-lost"));
  });

  test("a record of another key or attempt is not taken, whatever the store gives", async () => {
    const answers = memoryAnswerStore();
    const tokens: string[] = [];
    const swapped: AnswerStore = {
      ...answersOf(answers),
      keep(token, bytes) {
        tokens.push(token);
        answers.keep(token, bytes);
      },
      find: (token) => answers.find(tokens.find((other) => other !== token) ?? token),
    };
    const notices = collectNotices("mine");
    const encryptionKeys = [{ id: "a", secret }];
    const { pay } = await platform(
      framework,
      replayWith({ answers: swapped, encryptionKeys }),
      (req, res) => {
        res.send(`for ${String(req.idempotency?.key)}`);
      },
    );
    await pay({ key: "mine" });
    await pay({ key: "theirs" });
    expect(await pay({ key: "mine" })).toMatchObject({ status: 409, code: "already-processed" });
    expect(notices.codes()).toEqual(["answer-unreadable"]);
  });

  test("the answer is kept before the key is done, and the handler's answer leaves behind both", async () => {
    const order: string[] = [];
    const answers = memoryAnswerStore();
    const inner = memoryIdempotencyStore();
    const complete: typeof inner.complete = (key, token) => {
      order.push("done");
      return inner.complete(key, token);
    };
    const keep: AnswerStore["keep"] = async (token, bytes) => {
      await new Promise((resolve) => setTimeout(resolve, 20));
      order.push("kept");
      answers.keep(token, bytes);
    };
    const store = { isPrivate: true, ...steps(inner), complete };
    const { pay } = await platform(
      framework,
      { store, replay: { answers: { ...answersOf(answers), keep }, callers: "shared" } },
      (_req, res) => {
        res.on("finish", () => order.push("left"));
        res.send("paid");
      },
    );
    await pay();
    expect(order).toEqual(["kept", "done", "left"]);
  });
});

describe("idempotencyKeyHeader in the guard", () => {
  const [[, framework]] = frameworks;

  async function serve(options: Partial<IdempotencyGuardOptions> = {}) {
    const app = framework();
    let ran = 0;
    const guard = idempotencyGuard({
      store: memoryIdempotencyStore(),
      waitMs: 0,
      ...replayWith(),
      ...idempotencyKeyHeader(),
      ...options,
    });
    app.use(rawBody(), guard, (req, res) => {
      ran += 1;
      res.status(201).json({ ran, key: req.idempotency?.key ?? null });
    });
    app.use(guardErrors());
    return { ...(await listen(app)), ran: () => ran };
  }

  test("does what the draft says", async () => {
    const { pay, ran } = await serve();
    expect(await pay({ key: "" })).toMatchObject({ status: 400, code: "idempotency-key-missing" });
    expect(await pay({ key: "bare" })).toMatchObject({ status: 400, code: "idempotency-key-invalid" });
    const first = await pay({ key: '"k"' });
    expect(first).toMatchObject({ status: 201, body: '{"ran":1,"key":"k"}' });
    expect(await pay({ key: '"k"' })).toMatchObject({ status: 201, body: first.body });
    expect(await pay({ key: '"k"', body: "{}" })).toMatchObject({
      status: 422,
      code: "idempotency-key-reused",
    });
    expect(ran()).toBe(1);
  });
});

test.each<[string, unknown, RegExp]>([
  ["no answers", {}, /option replay\.answers must be an AnswerStore/],
  [
    "a store without find",
    { answers: { keep() {}, prune() {}, close() {} } },
    /option replay\.answers\.find must be a function/,
  ],
  ["Set-Cookie", { headers: ["Set-Cookie"] }, /option replay\.headers\[0\] is Set-Cookie, which no answer/],
  ["a field of the connection", { headers: ["X-A", "transfer-encoding"] }, /option replay\.headers\[1\] is/],
  ["no name", { headers: [""] }, /option replay\.headers\[0\] must be/],
  ["one text", { headers: "X-A" }, /option replay\.headers must be an array/],
  ["a limit over what is held back", { limit: "2mb" }, /option replay\.limit must be at most "1mb"/],
  ["no keys", { encryptionKeys: [] }, /option replay\.encryptionKeys must be/],
  [
    "a short key",
    { encryptionKeys: [{ id: "a", secret: "AAAA" }] },
    /encryptionKeys\[0\]\.secret must be 32 random bytes/,
  ],
  [
    "a key of one byte",
    { encryptionKeys: [{ id: "a", secret: Buffer.alloc(32).toString("base64") }] },
    /\.secret must be/,
  ],
  ["a key without a name", { encryptionKeys: [{ secret }] }, /encryptionKeys\[0\]\.id must be/],
  [
    "one name twice",
    {
      encryptionKeys: [
        { id: "a", secret },
        { id: "a", secret },
      ],
    },
    /has one id twice/,
  ],
  ["an unknown option", { ttl: 1 }, /unknown option replay\.ttl/],
])("throws on %s", (_name, replay, message) => {
  const given = {
    answers: memoryAnswerStore(),
    ...(replay as object),
    ...(_name === "no answers" && { answers: undefined }),
  };
  const build = (): unknown =>
    idempotencyGuard({ store: memoryIdempotencyStore(), key: () => "k", replay: given as ReplayOptions });
  expect(build).toThrow(TypeError);
  expect(build).toThrow(message);
  expect(build).not.toThrow(/AAEC/);
});

function answersOf(store: AnswerStore): AnswerStore {
  return {
    keep: (token, bytes) => store.keep(token, bytes),
    find: (token) => store.find(token),
    prune: () => store.prune(),
    close: () => store.close(),
  };
}

function failingComplete(inner: ReturnType<typeof memoryIdempotencyStore>) {
  let fails = false;
  const complete = (key: string, token: string) => {
    if (fails) throw new Error("down");
    return inner.complete(key, token);
  };
  return {
    store: { isPrivate: true, ...steps(inner), complete },
    fail: (now: boolean) => void (fails = now),
  };
}
