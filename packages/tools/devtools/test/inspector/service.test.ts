import { once } from "node:events";
import { readFileSync } from "node:fs";
import { get } from "node:http";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { createChangeStream, listen, pageFiles, sendProblems } from "../../dist/loopback/index.js";
import { afterEach, describe, expect, jest, test } from "@jest/globals";
import express, { type RequestHandler } from "express";
import { eventually } from "@countersign/test-support/runs/eventually.ts";

let listening: Awaited<ReturnType<typeof listen>> | undefined;
afterEach(async () => {
  await listening?.close();
  jest.restoreAllMocks();
});

async function serve(handler: RequestHandler): Promise<string> {
  const app = express().use(handler, ...sendProblems({ service: "the test" }));
  listening = await listen(app, { host: "127.0.0.1", port: 0 });
  return listening.url;
}

describe("a service", () => {
  test.each([
    [
      "a fault of its own",
      Object.assign(new Error("secret"), { code: "EOWN" }),
      500,
      "the test failed: secret (EOWN)",
    ],
    ["what is no Error", "secret", 500, "the test failed: secret (no code)"],
    ["what Express found", Object.assign(new Error("secret"), { status: 400 }), 400, undefined],
  ])("answers %s as problem details, without its message", async (_name, thrown, status, warning) => {
    const warn = jest.spyOn(process, "emitWarning").mockImplementation(() => undefined);
    const answer = await fetch(await serve((_req, _res, next) => next(thrown)));
    expect([answer.status, answer.headers.get("Content-Type")]).toEqual([
      status,
      "application/problem+json; charset=utf-8",
    ]);
    expect(await answer.text()).not.toContain("secret");
    expect(warn.mock.calls.map(([text]) => text)).toEqual(warning === undefined ? [] : [warning]);
  });

  test.each([
    ["preact", "preact.mjs"],
    ["htm", "htm.mjs"],
  ])("serves %s to pages as its package has it, and as it imports nothing", async (name, file) => {
    const url = await serve(pageFiles(new URL("../../page/inspector/", import.meta.url)));
    const answer = await fetch(`${url}/page/${name}.js`);
    const text = await answer.text();
    const main = createRequire(import.meta.url).resolve(name);
    expect(text).toBe(readFileSync(join(dirname(main), file), "utf8"));
    expect(answer.headers.get("Content-Type")).toBe("text/javascript; charset=utf-8");
    // A browser finds no module by a bare name.
    expect(text).not.toMatch(/\bimport\b/);
  });

  test("serves no file without a media type", () => {
    expect(() => pageFiles(new URL("../../", import.meta.url))).toThrow("no media type for LICENSE");
    expect(() => pageFiles(new URL("./none/", import.meta.url))).toThrow("ENOENT");
  });
});

describe("a change stream", () => {
  test("tells of a burst once, and goes on behind a reader that throws", async () => {
    const warn = jest.spyOn(process, "emitWarning").mockImplementation(() => undefined);
    let reads = 0;
    const stream = createChangeStream<"things">({
      service: "the test",
      counts: () => {
        reads += 1;
        if (reads === 1) throw new Error("not now");
        return { done: reads };
      },
    });
    const url = await serve((_req, res) => stream.open(res));
    const sent = get(url);
    const [answer] = await once(sent, "response");
    await once(answer, "data");
    stream.changed({ ids: [1] });
    await eventually(() => warn.mock.calls.length !== 0);
    expect(warn.mock.calls[0]?.[0]).toBe("the test's stream paused: not now");
    stream.changed({ ids: [2, 2] });
    stream.changed({ ids: [3], kind: "things" });
    const [told] = await once(answer, "data");
    expect(String(told)).toBe(
      'event: change\ndata: {"counts":{"done":2},"changed":[2,3],"kinds":["things"]}\n\n',
    );
    stream.close();
    await once(answer, "end");
    stream.changed({ ids: [4] });
    expect(reads).toBe(2);
  });
});
