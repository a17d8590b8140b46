import type { RequestListener } from "node:http";
import { gzipSync } from "node:zlib";
import { verdicts } from "@countersign/core/internal";
import { checkedRoute } from "@countersign/fetch";
import { send, type Answer } from "@countersign/test-support/servers/page-client.ts";
import { served } from "@countersign/test-support/servers/served.ts";
import { eventually } from "@countersign/test-support/runs/eventually.ts";
import { beforeEach, expect, test } from "@jest/globals";
import { InspectorBench, seeded } from "./inspector-bench.ts";

const bench = new InspectorBench();
beforeEach(() => bench.open());

/** The answer of a server whose one check lets everything pass, once it is recorded. */
async function answered(listener: RequestListener, method = "POST"): Promise<Answer> {
  const origin = await served((req, res) => {
    verdicts.publish({ name: "check", req }, verdicts.start(), undefined);
    return listener(req, res);
  });
  return recorded(await send(`${origin}/p`, { method }));
}

async function recorded(answer: Answer): Promise<Answer> {
  await eventually(async () => (await bench.newest())["status"] !== undefined);
  return answer;
}

const shown = async (): Promise<unknown> => (await bench.newest())["answer"];

test("the body of an answer is shown as it left, masked", async () => {
  const { text } = await answered((_req, res) => {
    res.write(`{"token":"${seeded.other.slice(0, 5)}`);
    res.write(Buffer.from(seeded.other.slice(5)));
    res.end("227d", "hex");
  });
  const whole = `{"token":"${seeded.other}"}`;
  expect(text).toBe(whole);
  expect(await shown()).toEqual({
    state: "read",
    bytes: whole.length,
    isCut: false,
    text: '{"token":"[masked]"}',
  });
  expect(await recorded(await bench.pay("key-1"))).toMatchObject({ status: 200 });
  expect(await shown()).toMatchObject({ state: "read", text: '{"acknowledged":true}' });
});

test("a long one is cut, and a secret across the end is masked", async () => {
  const body = `${"a".repeat(8_192 - 4)}${seeded.other}${"b".repeat(100_000)}`;
  expect((await answered((_req, res) => res.end(body))).text).toBe(body);
  const answer = (await shown()) as { text: string };
  expect(answer).toMatchObject({ state: "read", bytes: body.length, isCut: true });
  expect(answer.text.length).toBeLessThanOrEqual(8_192);
  expect(answer.text).toMatch(/^a{8188}\[mas$/);
});

test("what the app writes into its buffer later is not shown", async () => {
  await answered((_req, res) => {
    const bytes = Buffer.from("first");
    res.write(bytes, () => {
      bytes.fill("x");
      res.end();
    });
  });
  expect(await shown()).toMatchObject({ text: "first" });
});

test("bytes that are no UTF-8 are base64", async () => {
  await answered((_req, res) => res.end(Buffer.from([0xff, 0x00])));
  expect(await shown()).toEqual({ state: "read", bytes: 2, isCut: false, base64: "/wA=" });
});

test("one that is compressed is not shown: nothing in it could be masked", async () => {
  await answered((_req, res) => res.setHeader("Content-Encoding", "gzip").end(gzipSync(seeded.other)));
  expect(await shown()).toEqual({ state: "encoded" });
});

test.each<[string, RequestListener, string]>([
  ["an answer without one", (_req, res) => res.writeHead(204).end(), "POST"],
  ["HEAD", (_req, res) => res.end("not sent"), "HEAD"],
])("of %s it is empty", async (_name, listener, method) => {
  await answered(listener, method);
  expect(await shown()).toEqual({ state: "empty" });
});

test("it is not known where node:http does not send it, and known where it does", async () => {
  const route = checkedRoute(
    { name: "checked" },
    () => undefined,
    () => Response.json({ paid: true }),
  );
  const request = new Request("https://platform.example/p", { method: "POST", body: "{}" });
  await route(request);
  expect(await bench.newest()).toMatchObject({ answer: { state: "not-known" } });
  const origin = await served(async (_req, res) => {
    const answer = await route(new Request("https://platform.example/q"));
    res.writeHead(answer.status).end(await answer.text());
  });
  await recorded(await send(`${origin}/q`));
  expect(await bench.newest()).toMatchObject({ status: 200, answer: { text: '{"paid":true}' } });
});

test("without an inspector no response is touched", async () => {
  await bench.close();
  const own: boolean[] = [];
  const origin = await served((_req, res) => {
    own.push(Object.hasOwn(res, "write") || Object.hasOwn(res, "end"));
    res.end();
  });
  await send(`${origin}/`);
  expect(own).toEqual([false]);
});
