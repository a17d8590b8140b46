import { channel } from "node:diagnostics_channel";
import { guardChannel, type GuardEvent } from "@countersign/core";
import { publishFailure } from "@countersign/core/internal";
import { consoleLog, pinoLog } from "@countersign/observe/log";
import type { LineConsole } from "../dist/log/console-log.js";
import { afterEach, describe, expect, jest, test } from "@jest/globals";
import { pino } from "pino";
import { hostileText, judge, liveThrough } from "@countersign/test-support/runs/observed-life.ts";

const ends: (() => void)[] = [];

// A file before this one may have left a subscriber in the process.
const subscribed = (): boolean[] =>
  [guardChannel, channel("countersign:settled")].map(({ hasSubscribers }) => hasSubscribers);
const subscribedBefore = subscribed();

afterEach(() => {
  jest.restoreAllMocks();
  while (ends.length > 0) ends.pop()?.();
  expect(subscribed()).toEqual(subscribedBefore);
});

function logged(options?: Parameters<typeof pinoLog>[1]): { readonly lines: Record<string, unknown>[] } {
  const lines: Record<string, unknown>[] = [];
  const write = (line: string): void => void lines.push(JSON.parse(line));
  ends.push(pinoLog(pino({ base: null, timestamp: false }, { write }), options));
  return { lines };
}

const warn = 40;
const error = 50;
const uuid = expect.stringMatching(/^[\da-f-]{36}$/);

describe("pinoLog", () => {
  test("tells of refusals, failures, notices and held keys, with the record of each verdict", async () => {
    const { lines } = logged();
    await liveThrough();
    expect(lines).toEqual([
      {
        level: warn,
        msg: "request refused",
        guard: "ipAllowlist",
        outcome: "reject",
        code: "signature-mismatch",
        status: 401,
        id: uuid,
        durationMs: expect.any(Number),
        keyid: "key-1",
        label: "sig1",
        ageSeconds: 2.5,
        components: ["@method"],
        idempotencyKey: "k1",
        reason: "the signature does not verify",
        docs: expect.stringContaining("#signature-mismatch"),
      },
      expect.objectContaining({
        level: error,
        msg: "request not decided",
        guard: "exampleGuard",
        code: "unexpected-error",
        err: expect.objectContaining({ type: "TypeError", message: "a bug" }),
      }),
      {
        level: warn,
        msg: 'key "k1" waits',
        guard: "exampleGuard",
        code: "held",
        err: expect.objectContaining({ message: "why" }),
      },
      { level: warn, msg: "a key is held for an operator", guard: "exampleGuard", key: "k2" },
      expect.objectContaining({ code: "event-type-ignored" }),
    ]);
  });

  test("tells of passes too when it is asked to", () => {
    const { lines } = logged({ passes: true });
    judge();
    expect(lines.map(({ level, outcome }) => [level, outcome])).toEqual([
      [30, "pass"],
      [warn, "reject"],
      [error, "error"],
    ]);
  });

  test("writes ten lines a minute for each code, then one that counts the rest", async () => {
    const { lines } = logged();
    const now = jest.spyOn(performance, "now");
    for (let count = 0; count < 25; count += 1) judge();
    publishFailure({ guard: "exampleGuard", code: "held", message: "another code", error: new Error("why") });
    const codes = lines.map(({ code }) => code);
    expect(codes.filter((code) => code === "signature-mismatch")).toHaveLength(10);
    expect(codes.filter((code) => code === "unexpected-error")).toHaveLength(10);
    expect(lines.at(-1)).toMatchObject({ msg: "another code" });
    lines.length = 0;
    const later = performance.now() + 60_001;
    now.mockReturnValue(later);
    judge();
    now.mockRestore();
    expect(lines.map(({ msg, code }) => [msg, code])).toEqual([
      ["15 more lines with signature-mismatch were left out within a minute", "signature-mismatch"],
      ["15 more lines with unexpected-error were left out within a minute", "unexpected-error"],
      ["request refused", "signature-mismatch"],
      ["request not decided", "unexpected-error"],
    ]);
  });

  test("writes as many lines a minute as linesPerMinute says, and each held key and pass", () => {
    const { lines } = logged({ linesPerMinute: 2, passes: true });
    for (let count = 0; count < 12; count += 1) {
      judge();
      channel("countersign:settled").publish({ guard: "exampleGuard", key: `k${count}`, outcome: "held" });
    }
    const messages = lines.map(({ msg }) => msg);
    const countOf = (message: string): number => messages.filter((one) => one === message).length;
    expect(["request refused", "request not decided"].map(countOf)).toEqual([2, 2]);
    expect(["request passed", "a key is held for an operator"].map(countOf)).toEqual([12, 12]);
  });

  test("refuses what is no logger, and unknown options", () => {
    expect(() => pinoLog({} as never)).toThrow(/^pinoLog: option logger/);
    expect(() => pinoLog(pino(), { pases: true } as never)).toThrow(/pases/);
  });
});

describe("explain", () => {
  // Turns of the event loop, and not a time: on a busy machine a timer is due before what was put behind the request.
  const settle = async (): Promise<void> => {
    for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  };

  test("is asked behind a refusal, and its answer is a line with the id", async () => {
    const explain = jest.fn(async ({ code }: GuardEvent) => `because of ${code}`);
    const { lines } = logged({ explain });
    judge();
    expect(explain).not.toHaveBeenCalled();
    await settle();
    expect(explain).toHaveBeenCalledTimes(1);
    expect(lines.at(-1)).toEqual({
      level: warn,
      msg: "because of signature-mismatch",
      guard: "ipAllowlist",
      code: "signature-mismatch",
      id: lines[0]?.["id"],
    });
  });

  test("is asked so often a minute and no more, and may fail", async () => {
    const emitWarning = jest.spyOn(process, "emitWarning").mockImplementation(() => undefined);
    const now = jest.spyOn(performance, "now");
    const explain = jest.fn(() => Promise.reject(new Error("a bug")));
    const { lines } = logged({ explain, explainPerMinute: 2 });
    for (let count = 0; count < 5; count += 1) judge();
    await settle();
    expect(explain).toHaveBeenCalledTimes(2);
    expect(emitWarning).toHaveBeenCalledTimes(2);
    expect(lines).toHaveLength(10);
    const later = performance.now() + 60_001;
    now.mockReturnValue(later);
    judge();
    now.mockRestore();
    await settle();
    expect(explain).toHaveBeenCalledTimes(3);
  });
});

describe("consoleLog", () => {
  function written(): { readonly lines: [string, string][]; readonly console: LineConsole } {
    const lines: [string, string][] = [];
    const level = (name: string) => (line: string) => void lines.push([name, line]);
    return { lines, console: { info: level("info"), warn: level("warn"), error: level("error") } };
  }

  test("writes one line each", async () => {
    const { lines, console } = written();
    ends.push(consoleLog({ console }));
    await liveThrough();
    const [refused, failed, notice, held] = lines.map(([level, line]) => [level, line.slice(25)]);
    expect(refused).toEqual([
      "warn",
      expect.stringMatching(
        /^warn request refused: id=\S{36} guard=ipAllowlist outcome=reject code=signature-mismatch status=401 durationMs=\S+ label=sig1 keyid=key-1 ageSeconds=2.5 components="@method" idempotencyKey=k1 reason="the signature does not verify" docs=https:\S+$/,
      ),
    ]);
    expect(failed).toEqual(["error", expect.stringMatching(/^error request not decided: .* error="a bug"$/)]);
    expect(notice).toEqual([
      "warn",
      String.raw`warn key \"k1\" waits: guard=exampleGuard code=held error=why`,
    ]);
    expect(held).toEqual(["warn", "warn a key is held for an operator: guard=exampleGuard key=k2"]);
  });

  test("keeps a stranger's text in its line, and in its bounds", () => {
    const { lines, console } = written();
    ends.push(consoleLog({ console }));
    judge(hostileText);
    for (const [, line] of lines) expect(line).toMatch(/^[\x20-\x7e]{1,1200}$/);
    expect(lines[0]?.[1]).toContain("stranger");
  });

  test("writes to the console of the process by default", () => {
    const warned = jest.spyOn(console, "warn").mockImplementation(() => undefined);
    jest.spyOn(console, "error").mockImplementation(() => undefined);
    ends.push(consoleLog());
    judge();
    expect(warned).toHaveBeenCalledTimes(1);
    jest.restoreAllMocks();
  });
});

test("a sink that throws becomes a process warning, and ends no process", () => {
  const emitWarning = jest.spyOn(process, "emitWarning").mockImplementation(() => undefined);
  const broken = (): never => {
    throw new Error("the disk is full");
  };
  ends.push(pinoLog({ info: broken, warn: broken, error: broken }));
  judge();
  expect(emitWarning.mock.calls.map(([text]) => text)).toEqual(
    Array.from({ length: 2 }, () => 'pinoLog could not tell of an event: Error: "the disk is full"'),
  );
});
