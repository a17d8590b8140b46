import { createReadStream, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { once } from "node:events";
import { afterAll, describe, expect, test } from "@jest/globals";
import type express from "express";
import { guardErrors } from "@countersign/express";
import { memoryIdempotencyStore } from "@countersign/idempotency";
import {
  bytesOf,
  eachTest,
  eventually,
  faultyStore,
  frameworks,
  listen,
  payoutGuard,
  platform,
  sleep,
  type Handler,
} from "./kit.ts";

const notices = eachTest();

const key = "op.a.b";
const folder = mkdtempSync(join(tmpdir(), "held-response-"));
const smallFile = join(folder, "small.txt");
const largeFile = join(folder, "large.txt");
const large = "0123456789abcdef".repeat(160_000);
writeFileSync(smallFile, "small file");
writeFileSync(largeFile, large);
afterAll(() => rmSync(folder, { recursive: true }));

interface Row {
  readonly name: string;
  readonly handler: Handler;
  readonly body: string;
}

const rows: readonly Row[] = [
  { name: "json", handler: (_req, res) => res.json({ a: 1 }), body: '{"a":1}' },
  { name: "send", handler: (_req, res) => res.send("text"), body: "text" },
  { name: "end alone", handler: (_req, res) => res.end(), body: "" },
  { name: "end with a callback alone", handler: (_req, res) => res.end(() => {}), body: "" },
  { name: "end with an encoding", handler: (_req, res) => res.end("68690a", "hex"), body: "hi\n" },
  { name: "end with bytes", handler: (_req, res) => res.end(Buffer.from("bytes")), body: "bytes" },
  { name: "end with null", handler: (_req, res) => res.end(null), body: "" },
  {
    name: "writeHead with fields",
    handler: (_req, res) => res.writeHead(200, { "X-Head": "1" }).end("head"),
    body: "head",
  },
  {
    name: "writeHead with a reason",
    handler: (_req, res) => res.writeHead(200, "Paid", { "X-Head": "1" }).end("head"),
    body: "head",
  },
  {
    name: "writes with callbacks that are waited for",
    handler: async (_req, res) => {
      await new Promise((resolve) => res.write("one ", resolve));
      await new Promise((resolve) => res.write("dHdv", "base64", resolve));
      res.end(" three");
    },
    body: "one two three",
  },
  {
    name: "writes from a buffer that is used again",
    handler: async (_req, res) => {
      const buffer = Buffer.from("a");
      res.write(buffer);
      await new Promise((resolve) => setImmediate(resolve));
      buffer.write("b");
      res.end(buffer);
    },
    body: "ab",
  },
  {
    name: "flushHeaders before the body",
    handler: (_req, res) => {
      res.flushHeaders();
      res.end("flushed");
    },
    body: "flushed",
  },
  { name: "a pipe", handler: (_req, res) => createReadStream(smallFile).pipe(res), body: "small file" },
  { name: "a pipeline", handler: (_req, res) => pipeline(Readable.from(["a", "b"]), res), body: "ab" },
  { name: "sendFile", handler: (_req, res) => res.sendFile(smallFile), body: "small file" },
  { name: "a large pipe", handler: (_req, res) => createReadStream(largeFile).pipe(res), body: large },
  {
    name: "a large pipeline",
    handler: (_req, res) => pipeline(createReadStream(largeFile), res),
    body: large,
  },
  { name: "a large sendFile", handler: (_req, res) => res.sendFile(largeFile), body: large },
  { name: "one large end", handler: (_req, res) => res.end(large), body: large },
  {
    name: "large writes in one go",
    handler: (_req, res) => {
      for (let index = 0; index < 40; index += 1)
        res.write(large.slice(index * 64_000, (index + 1) * 64_000));
      res.end();
    },
    body: large,
  },
];

describe.each(frameworks)("the answer of a handler on %s", (version, framework) => {
  // What a synchronous store is good for is seen on one framework.
  const kinds = version === "express 5" ? [{ delayMs: undefined }, { delayMs: 15 }] : [{ delayMs: 15 }];
  describe.each(kinds)("with a store that takes $delayMs ms", ({ delayMs }) => {
    const createStore = () => {
      if (delayMs === undefined) return faultyStore({ synchronous: true });
      const store = faultyStore();
      store.fail("complete", delayMs);
      return store;
    };

    test.each(rows)("leaves whole, and once done is recorded: $name", async ({ handler, body }) => {
      const store = createStore();
      let stateAtFirstByte: unknown;
      const app = await platform(framework, { store }, (req, res, next) => {
        const { socket } = res;
        const write: unknown = Reflect.get(socket ?? {}, "write");
        Reflect.set(socket ?? {}, "write", (...args: unknown[]) => {
          stateAtFirstByte ??= store.inner.read(key)?.state;
          return Reflect.apply(write as () => boolean, socket, args);
        });
        return handler(req, res, next);
      });
      const answer = await app.pay();
      expect(answer.status).toBe(200);
      expect(answer.body.length).toBe(body.length);
      expect(answer.body === body).toBe(true);
      expect(stateAtFirstByte).toBe("done");
      expect(store.calls).toMatchObject({ complete: 1, release: 0 });
      expect((await app.pay()).status).toBe(409);
    });

    test("ends once, whatever is called after the end", async () => {
      const store = createStore();
      const errors: unknown[] = [];
      const app = await platform(framework, { store }, async (_req, res) => {
        res.on("error", () => {});
        res
          .status(200)
          .set({ "X-Answer": "first", "Set-Cookie": ["a=1"] })
          .json({ answer: "first" });
        res.end("again", (error?: Error | null) => errors.push(error));
        res.write("more", (error) => errors.push(error));
        for (const late of [
          () => res.appendHeader("Set-Cookie", "b=2"),
          () => res.setHeader("X-Answer", "second"),
          () => res.setHeader("X-Late", "1"),
          () => res.writeHead(500, { "X-Later": "1" }),
        ]) {
          try {
            late();
          } catch (error) {
            // Where the answer has left already, Node says so.
            expect(error).toMatchObject({ code: "ERR_HTTP_HEADERS_SENT" });
          }
        }
        await sleep(0);
        throw new Error("after the answer");
      });
      const answer = await app.pay();
      expect(answer).toMatchObject({ status: 200, body: '{"answer":"first"}' });
      expect(answer.headers).toMatchObject({ "x-answer": "first", "set-cookie": ["a=1"] });
      expect(answer.headers).not.toHaveProperty("x-late");
      expect(answer.headers).not.toHaveProperty("x-later");
      await eventually(() => errors.length === 2);
      expect(errors).toContainEqual(expect.objectContaining({ code: "ERR_STREAM_WRITE_AFTER_END" }));
      expect(store.calls).toMatchObject({ complete: 1, release: 0 });
    });

    test("ends once for a handler that ends twice, and nothing is thrown that nobody catches", async () => {
      const unheard: unknown[] = [];
      const app = await platform(framework, { store: createStore() }, async (_req, res) => {
        // Without a listener, an error event would end the process.
        res.on("error", (error) => unheard.push(error));
        res.end("first");
        res.end("second");
        res.write("third");
        await once(res, "finish");
        res.end("late");
        res.write("later");
      });
      expect(await app.pay()).toMatchObject({ status: 200, body: "first" });
      expect((await app.pay()).status).toBe(409);
      expect(unheard).toEqual([]);
    });

    test.each([
      ["an object", () => ({ "X-Head": "1" })],
      ["a list", () => ["X-Head", "1"]],
    ])("has the head that was written, by %s that its author changes later", async (_form, make) => {
      const app = await platform(framework, { store: createStore() }, (_req, res) => {
        const fields = make();
        res.writeHead(200, fields as never).end("head");
        Object.assign(fields, Array.isArray(fields) ? { 1: "2" } : { "X-Head": "2" });
      });
      expect((await app.pay()).headers).toMatchObject({ "x-head": "1" });
    });

    test("is the error handler's when a 2xx was begun and nothing has left", async () => {
      const store = createStore();
      const app = await platform(framework, { store }, (_req, res) => {
        res.writeHead(200, { "X-Head": "1" });
        res.write("half of a succ");
        throw new Error("bank down");
      });
      const answer = await app.pay();
      expect(answer).toMatchObject({ status: 500, body: '{"failed":"Error: bank down"}' });
      expect(answer.headers).not.toHaveProperty("x-head");
      expect(store.inner.read(key)).toMatchObject({
        state: "held",
        reason: "its handler began to respond 200, and then that response failed",
      });
    });

    test("is settled after the client destroyed the socket", async () => {
      const store = createStore();
      let working = false;
      let ended = false;
      const app = await platform(framework, { store, waitMs: 0 }, async (_req, res) => {
        res.on("error", () => {});
        working = true;
        await once(res, "close");
        res.write("one");
        res.end("two");
        ended = true;
      });
      await app.payAndLeave(() => eventually(() => working));
      await eventually(() => ended && store.calls.complete === 1);
      await eventually(async () => (await app.pay()).status === 409);
    });

    test.each([
      { recovery: "rerun", state: undefined },
      { recovery: "hold", state: "held" },
    ] as const)(
      "leaves the key by recovery $recovery when a pipeline destroys it, and its handler fails",
      async ({ recovery, state }) => {
        const store = createStore();
        const app = await platform(framework, { store, recovery }, (_req, res) =>
          pipeline(
            Readable.from(
              (function* source() {
                yield "part";
                throw new Error("disk");
              })(),
            ),
            res,
          ),
        );
        await expect(app.pay()).rejects.toThrow("socket hang up");
        await eventually(async () => store.inner.read(key)?.state === state);
      },
    );

    test("is replaced without what the handler said, and keeps what others said before", async () => {
      const app = framework();
      app.use(bytesOf(framework), (_req, res, next) => {
        res.set({ "X-Before": "kept", "Content-Language": "en" });
        next();
      });
      app.post("/pay", payoutGuard({ store: createStore() }), (_req, res) => {
        res.writeHead(409, { "X-Handler": "gone" });
        res.write(large);
        res.end("more");
      });
      const running = await listen(app);
      const answer = await running.pay();
      expect(answer).toMatchObject({ status: 500, headers: { "x-before": "kept" } });
      expect(answer.headers).not.toHaveProperty("x-handler");
      expect(answer.headers).not.toHaveProperty("content-language");
      expect(answer.body.length).toBeLessThan(200);
    });

    test("streams a large failure before the key is held, and holds it at the end", async () => {
      const store = createStore();
      store.fail("hold", delayMs ?? "as usual");
      let stateWhileStreaming: unknown;
      const app = await platform(framework, { store }, async (_req, res) => {
        res.status(500);
        if (!res.write(large)) await once(res, "drain");
        await sleep(20);
        stateWhileStreaming = store.inner.read(key)?.state;
        res.end("end");
      });
      const answer = await app.pay();
      expect(answer.status).toBe(500);
      expect(answer.body.length).toBe(large.length + 3);
      expect(stateWhileStreaming).toBe("running");
      expect(store.inner.read(key)?.state).toBe("held");
    });

    test.each([
      { name: "write of a number", act: (res: express.Response) => res.write(7) },
      { name: "end of a number", act: (res: express.Response) => res.end(7) },
      { name: "writeHead with no status", act: (res: express.Response) => res.writeHead(7) },
    ])("refuses what Node refuses at once: $name", async ({ act }) => {
      const store = createStore();
      const app = await platform(framework, { store }, (_req, res) => act(res));
      expect((await app.pay()).status).toBe(500);
      expect(store.inner.read(key)).toMatchObject({
        state: "held",
        reason: expect.stringMatching(/^its handler threw an error \((?:Type|Range)Error\)/),
      });
    });

    test("becomes a 500 when Node refuses to send it, and the payment stays recorded", async () => {
      const store = createStore();
      const app = await platform(framework, { store }, (_req, res) => {
        res.writeHead(200, { "X-Bad": "line\nbreak" }).end("x");
      });
      expect((await app.pay()).status).toBe(500);
      expect((await app.pay()).status).toBe(409);
      expect(notices.codes()).toEqual(["answer-unsendable"]);
    });

    test("is cut off when the 500 is refused as well, and the process goes on", async () => {
      const store = createStore();
      const app = framework();
      app.use(bytesOf(framework));
      app.use((req, res, next) => {
        if (req.headers["x-break"] === undefined) return next();
        res.writeHead = () => {
          throw new Error("no head");
        };
        next();
      });
      app.post("/pay", payoutGuard({ store }), (_req, res) => void res.json({ paid: true }));
      app.use(guardErrors());
      const running = await listen(app);
      await expect(running.pay({ headers: { "x-break": "1" } })).rejects.toThrow("socket hang up");
      expect((await running.pay()).status).toBe(409);
      expect(notices.codes()).toEqual(["answer-unsendable"]);
    });

    test("keeps the status of its first output, as Node does", async () => {
      const app = await platform(framework, { store: createStore() }, (_req, res) => {
        res.write("a");
        res.status(201).end("b");
      });
      expect(await app.pay()).toMatchObject({ status: 200, body: "ab" });
    });

    test("passes a hook that was mounted before it, and one that was mounted after", async () => {
      const seen: string[] = [];
      const hook =
        (name: string): express.RequestHandler =>
        (_req, res, next) => {
          const writeHead: unknown = Reflect.get(res, "writeHead");
          Reflect.set(res, "writeHead", (...args: unknown[]) => {
            seen.push(`${name} ${String(res.statusCode)}`);
            res.setHeader(`X-${name}`, "1");
            return Reflect.apply(writeHead as () => unknown, res, args);
          });
          next();
        };
      const app = framework();
      app.use(bytesOf(framework), hook("Outer"));
      app.post(
        "/pay",
        payoutGuard({ store: createStore() }),
        hook("Inner"),
        (_req, res) => void res.status(201).json({}),
      );
      const running = await listen(app);
      expect(await running.pay()).toMatchObject({ status: 201, headers: { "x-outer": "1", "x-inner": "1" } });
      expect(seen).toEqual(["Inner 201", "Outer 201"]);
    });
  });

  test("tells the writer of a large 2xx to wait, and to go on", async () => {
    const store = faultyStore();
    store.fail("complete", 50);
    const seen: unknown[] = [];
    const app = await platform(framework, { store }, async (_req, res) => {
      seen.push(res.write("small"), res.write(large), res.write("more"));
      await once(res, "drain");
      seen.push(store.inner.read(key)?.state);
      res.end("end");
    });
    expect((await app.pay()).body.length).toBe(large.length + 12);
    expect(seen).toEqual([true, false, false, "done"]);
  });

  test("drops the rest of a large 2xx whose key was lost, and lets its writer go on", async () => {
    const store = faultyStore();
    let ended = false;
    const app = await platform(framework, { store }, async (req, res) => {
      store.inner.release(key, req.idempotency?.token ?? "");
      res.write(large);
      await once(res, "drain");
      expect(res.write("more", () => {})).toBe(true);
      res.end("end", () => {
        ended = true;
      });
    });
    const answer = await app.pay();
    expect(answer.status).toBe(503);
    expect(answer.body).toBe('{"type":"about:blank","title":"Service Unavailable","status":503}');
    await eventually(() => ended);
  });

  test("is cut when somebody wrote past the guard and the key was lost", async () => {
    const store = memoryIdempotencyStore();
    const app = framework();
    app.use(bytesOf(framework));
    app.use((_req, res, next) => {
      // As a middleware that keeps the methods it found before the guard.
      const writeHead = res.writeHead.bind(res);
      const write: (chunk: string) => boolean = res.write.bind(res);
      Reflect.set(res, "writeEarly", () => writeHead(200) && write("half"));
      next();
    });
    app.post("/pay", payoutGuard({ store }), (req, res) => {
      store.release(key, req.idempotency?.token ?? "");
      (Reflect.get(res, "writeEarly") as () => void)();
      res.end("success");
    });
    app.use(((_error, _req, res, _next) => void res.end()) satisfies express.ErrorRequestHandler);
    const running = await listen(app);
    await expect(running.pay()).rejects.toThrow();
    expect(notices.codes()).toEqual(["completion-lost"]);
  });
});
