import { afterEach, describe, expect, test } from "@jest/globals";
import { guardErrors } from "@countersign/express";
import { memoryIdempotencyStore } from "@countersign/idempotency";
import {
  bytesOf,
  closePlatforms,
  frameworks,
  listen,
  payoutGuard,
  type Framework,
  type Platform,
} from "./kit.ts";

afterEach(closePlatforms);

type Prepare = (app: ReturnType<Framework>) => void;

const key = "op.a.b";

/** Runs a payment twice; the first answer must wait for the record, so the second finds it. */
async function payTwice(framework: Framework, prepare: Prepare): Promise<number[]> {
  const app = framework();
  app.use(bytesOf(framework));
  prepare(app);
  app.use(guardErrors());
  const platform: Platform = await listen(app);
  const first = await platform.pay({ key });
  const second = await platform.pay({ key });
  return [first.status, second.status];
}

describe.each(frameworks)("the hooks on %s", (_name, framework) => {
  test("hold the answer of a mounted app, for which Express exchanges the prototype of the response", async () => {
    const store = memoryIdempotencyStore();
    let recorded: unknown = "no answer yet";
    const statuses = await payTwice(framework, (app) => {
      const mounted = framework();
      mounted.post("/", (_req, res) => {
        res.once("finish", () => {
          recorded = store.read(key);
        });
        res.json({ paid: true });
      });
      app.use("/pay", payoutGuard({ store }), mounted);
    });
    expect(statuses).toEqual([200, 409]);
    expect(recorded).toMatchObject({ state: "done" });
  });

  test("stay in front of methods that another middleware put on the response before", async () => {
    const seen: string[] = [];
    const statuses = await payTwice(framework, (app) => {
      app.use((_req, res, next) => {
        const end = res.end.bind(res) as (...call: unknown[]) => typeof res;
        res.end = ((...call: unknown[]) => {
          seen.push("end");
          return end(...call);
        }) as typeof res.end;
        next();
      });
      app.post("/pay", payoutGuard({ store: memoryIdempotencyStore() }), (_req, res) => void res.json({}));
    });
    expect(statuses).toEqual([200, 409]);
    expect(seen).toEqual(["end", "end"]);
  });

  test("answer for an object that inherits from the response, and refuse any other", async () => {
    let refused: unknown;
    const statuses = await payTwice(framework, (app) => {
      app.post("/pay", payoutGuard({ store: memoryIdempotencyStore() }), (_req, res) => {
        try {
          Reflect.apply(res.end, {}, ["paid"]);
        } catch (error) {
          refused = error;
        }
        (Object.create(res) as typeof res).end("paid");
      });
    });
    expect(statuses).toEqual([200, 409]);
    expect(refused).toBeInstanceOf(TypeError);
  });
});
