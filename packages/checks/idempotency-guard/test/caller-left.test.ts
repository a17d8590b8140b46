// A handler that fails after its caller has left may have paid before: what failed may have been the answer.
import { once } from "node:events";
import { connect, createServer } from "node:http2";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { describe, expect, test } from "@jest/globals";
import type { Middleware } from "@countersign/express";
import { memoryIdempotencyStore } from "@countersign/idempotency";
import { eachTest, eventually, frameworks, payoutGuard, platform, type Handler } from "./kit.ts";

const key = "op.a.b";
const threwReason = expect.stringContaining("its handler threw");
const leftReason = expect.stringContaining("its caller had left");
const notices = eachTest();

/** Begins, and never ends. */
function endless(): Readable {
  const source = new Readable({ read() {} });
  source.push("receipt");
  return source;
}

const failures: [string, Handler][] = [
  ["streams its answer", (_req, res) => pipeline(endless(), res)],
  [
    "fails with the bank, which stops with its caller",
    async (_req, res) => {
      await once(res, "close");
      throw new DOMException("This operation was aborted", "AbortError");
    },
  ],
  ["answers 503", async (_req, res) => (await once(res, "close"), void res.status(503).end())],
  ["answers 499", async (_req, res) => (await once(res, "close"), void res.status(499).end())],
];

describe.each(frameworks)("a handler whose caller has left, on %s", (_name, framework) => {
  test.each(failures)("holds its key when it pays and %s: no retry pays again", async (what, answer) => {
    const store = memoryIdempotencyStore();
    let paid = 0;
    const app = await platform(framework, { store, waitMs: 0 }, async (req, res, next) => {
      paid += 1;
      await answer(req, res, next);
    });
    await app.payAndLeave(() => eventually(() => paid === 1));
    await eventually(() => store.read(key)?.state !== "running");
    expect(store.read(key)).toMatchObject({
      state: "held",
      reason: what === "fails with the bank, which stops with its caller" ? threwReason : leftReason,
    });
    expect(await app.pay()).toMatchObject({ status: 503, code: "held" });
    expect(paid).toBe(1);
    expect(notices.codes()).toEqual(["held"]);
  });

  test.each<[string, Handler, "hold" | "rerun"]>([
    ["refuses under hold", (_req, res) => void res.status(422).end(), "hold"],
    ["throws under rerun", () => Promise.reject(new Error("the bank is away")), "rerun"],
  ])("frees its key when it %s: the retry runs", async (_what, answer, recovery) => {
    let ran = 0;
    const store = memoryIdempotencyStore();
    const app = await platform(framework, { store, recovery, waitMs: 0 }, async (req, res, next) => {
      ran += 1;
      if (ran > 1) return res.json({});
      await once(res, "close");
      return answer(req, res, next);
    });
    await app.payAndLeave(() => eventually(() => ran === 1));
    await eventually(() => store.read(key) === undefined);
    expect((await app.pay()).status).toBe(200);
  });

  test.each<[string, Handler]>([
    ["sends a file", async (_req, res) => (await once(res, "close"), res.sendFile(import.meta.filename))],
    ["pipes its answer", (_req, res) => endless().pipe(res)],
  ])("holds its key when it %s, not at its time-out", async (_what, answer) => {
    const store = memoryIdempotencyStore();
    let paid = 0;
    const app = await platform(framework, { store, waitMs: 0 }, (req, res, next) => {
      paid += 1;
      return answer(req, res, next);
    });
    await app.payAndLeave(() => eventually(() => paid === 1));
    await eventually(() => store.read(key)?.state !== "running");
    expect(await app.pay()).toMatchObject({ status: 503, code: "held" });
    expect(paid).toBe(1);
  });

  test("completes its key all the same when it ends its answer itself", async () => {
    const store = memoryIdempotencyStore();
    let paid = 0;
    const app = await platform(framework, { store }, async (_req, res) => {
      paid += 1;
      await pipeline(endless(), res).catch(() => undefined);
      await eventually(() => store.read(key)?.state === "held");
      res.end();
    });
    await app.payAndLeave(() => eventually(() => paid === 1));
    await eventually(() => store.read(key)?.state === "done");
    expect(notices.codes()).toEqual([]);
  });
});

// Its responses have no `destroyed`.
test("a handler that fails after its caller has left over HTTP/2 has its key held", async () => {
  const store = memoryIdempotencyStore();
  const guard = payoutGuard({ store, fingerprint: () => "f" });
  let paid = 0;
  const server = createServer((req, res) => {
    const [nodeReq, nodeRes] = [req, res] as unknown as Parameters<Middleware>;
    const pay = async (): Promise<void> => {
      paid += 1;
      await once(res.stream, "close");
      res.writeHead(500).end();
    };
    guard(nodeReq, nodeRes, () => void pay());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const session = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  try {
    const stream = session.request({ ":method": "POST", "idempotency-key": key });
    await eventually(() => paid === 1);
    stream.close();
    await eventually(() => store.read(key)?.state !== "running");
    expect(store.read(key)).toMatchObject({ state: "held", reason: leftReason });
  } finally {
    session.destroy();
    server.close();
  }
});
