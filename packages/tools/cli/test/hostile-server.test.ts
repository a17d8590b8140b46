import type { RequestListener } from "node:http";
import { Readable } from "node:stream";
import { createGzip } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { withServer } from "@countersign/test-support/servers/wire.ts";
import { runCli } from "../src/program.ts";
import { CliBench, run, type Run } from "./cli-bench.ts";

const cli = new CliBench();
beforeAll(() => cli.open());
afterAll(() => cli.close());

// What a receiver or a tunnel in between may answer: it sets the title, clears the screen, and turns the line around.
const steering = "\u001B]0;title\u0007\u001B[2J\u009B31m\u202Egnp.exe\r\n";
const problem: RequestListener = (req, res) => {
  req.resume();
  res.writeHead(422, { "content-type": "application/problem+json" });
  res.end(JSON.stringify({ code: "invalid", detail: steering, title: steering }));
};
const endless: RequestListener = (req, res) => {
  req.resume();
  const compressed = req.headers["accept-encoding"]?.includes("gzip") === true;
  res.writeHead(422, compressed ? { "content-encoding": "gzip" } : {});
  const zeros = new Readable({
    read() {
      this.push(Buffer.alloc(65_536));
    },
  });
  const sent = compressed ? zeros.pipe(createGzip()) : zeros;
  sent.pipe(res);
  res.on("close", () => zeros.destroy());
};

function against(listener: RequestListener, argsAt: (url: string) => readonly string[]): Promise<Run> {
  return withServer(listener, (port) => run(argsAt(`http://127.0.0.1:${port}`)));
}

const commands: readonly (readonly [name: string, argsAt: (url: string) => readonly string[]])[] = [
  ["trigger", (url) => ["trigger", "buyer.status_changed", "--api-key", "test-key", "--url", url]],
  ["payout", (url) => cli.payout("--url", `${url}/pay`)],
  [
    "webhook",
    (url) => ["webhook", "--url", `${url}/hook`, "--username", "u", "--password", "p", "--secret", "test-s"],
  ],
  [
    "endpoint create",
    (url) =>
      `endpoint create --base-url ${url} --api-key test-key --retries 0 --generate --platform-url https://a.example`.split(
        " ",
      ),
  ],
  ["doctor --url", (url) => ["doctor", "--url", url]],
];

describe("a server that answers with what it likes", () => {
  test.each(commands)("steers no terminal through %s", async (_name, argsAt) => {
    const { code, out, err } = await against(problem, argsAt);
    expect(code).toBe(1);
    expect(out + err).not.toMatch(/[^\P{C}\n]/u);
  });

  test.each(commands)("does not keep %s reading without an end", async (_name, argsAt) => {
    const { code, out, err } = await against(endless, argsAt);
    expect(code).toBe(1);
    expect(out + err).not.toMatch(/[^\P{C}\n]/u);
  });

  test("has its status judged by doctor, whose answer has no end", async () => {
    const { out } = await against(endless, (url) => ["doctor", "--url", url]);
    expect(out).toContain("is answered 422, not 401");
  });

  test("has its detail shown by trigger", async () => {
    const [, argsAt] = commands.find(([command]) => command === "trigger") ?? [];
    const { err } = await against(problem, argsAt ?? (() => []));
    expect(err).toMatch(/^error: the sandbox answers: \\u\{1b\}\]0;title[^\n]*\n$/);
  });
});

test("an error that nobody expected steers no terminal", async () => {
  let err = "";
  const code = await runCli(["--version"], {
    writeOut() {
      throw new Error(steering);
    },
    writeError: (text) => (err += text),
    colours: false,
    clock: () => 0,
  });
  expect([code, err]).toEqual([70, expect.stringContaining(String.raw`\u{1b}]0;title\u{7}`)]);
  expect(err).not.toMatch(/[^\P{C}\n\t]/u);
});
