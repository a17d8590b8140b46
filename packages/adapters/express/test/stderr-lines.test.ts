import { execFile } from "node:child_process";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import { guardChannelName, GuardError, noticeChannelName } from "@countersign/core";
import { publishFailure, requestAborted, verdicts } from "@countersign/core/internal";
import {
  guard,
  guardErrors,
  type ErrorMiddleware,
  type GuardRequest,
  type GuardResponse,
} from "@countersign/express";
import { connect } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";
import { afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";
import type { Express } from "express";
import express4 from "express4";
import supertest from "supertest";
import { expressVersionsWith, type ExpressFactory } from "@countersign/test-support/runs/express-versions.ts";
import { withServer } from "@countersign/test-support/servers/wire.ts";

const page = "https://github.com/countersign/countersign/blob/main/site/pages/reference/codes.md";

const run = promisify(execFile);
const consoleError = jest.spyOn(console, "error");
// A minute of the limiter is over before each test, which counts from nothing.
let minutes = 0;
const realNow = performance.now.bind(performance);
const nothing = (): void => undefined;

beforeEach(() => {
  delete process.env["COUNTERSIGN_STDERR"];
  minutes += 2;
  jest.spyOn(performance, "now").mockImplementation(() => realNow() + minutes * 60_000);
  // What the test before has left out is counted now.
  consoleError.mockImplementation(nothing);
  publishFailure({ guard: "test", code: `start-${minutes}`, message: "" });
  consoleError.mockClear();
});

afterEach(() => {
  process.env["COUNTERSIGN_STDERR"] = "off";
  consoleError.mockReset();
});

function lines(): unknown[] {
  return consoleError.mock.calls.map(([line, ...others]) => {
    expect(others).toEqual([]);
    return line;
  });
}

function appOf(framework: ExpressFactory, error: unknown, answer: ErrorMiddleware = ownAnswer): Express {
  const app = framework();
  app.set("env", "test");
  app.use(
    "/secret-path",
    guard("exampleGuard", () => {
      throw error;
    }),
  );
  app.use(answer);
  return app;
}

const ownAnswer: ErrorMiddleware = (_error, _req, res, _next) => {
  res.statusCode = 400;
  res.end();
};

const refusal = (init: Partial<ConstructorParameters<typeof GuardError>[0]> = {}): GuardError =>
  new GuardError({
    status: 401,
    code: "signature-mismatch",
    message: "the signature does not verify",
    ...init,
  });

async function ask(app: Express): Promise<void> {
  await supertest(app).get("/secret-path?token=hidden").set("Authorization", "Basic hidden");
}

describe.each(expressVersionsWith(express4))("without a subscriber, on %s", (_version, framework) => {
  test("a refusal is one line on stderr", async () => {
    await ask(appOf(framework, refusal()));
    expect(lines()).toEqual([
      `countersign: exampleGuard refused a GET with 401 signature-mismatch: "the signature does not verify"; see ${page}#signature-mismatch`,
    ]);
  });

  test("the line has the causes", async () => {
    const socket = Object.assign(new Error(""), { code: "ECONNREFUSED" });
    const cause = new Error("no connection", { cause: socket });
    await ask(
      appOf(
        framework,
        refusal({ status: 503, code: "nonce-store-unavailable", message: "no answer", cause }),
      ),
    );
    expect(lines()).toEqual([
      'countersign: exampleGuard refused a GET with 503 nonce-store-unavailable: "no answer", caused by Error "no connection", ' +
        `caused by Error ECONNREFUSED ""; see ${page}#nonce-store-unavailable`,
    ]);
  });

  test("an error that is no GuardError is one too", async () => {
    await ask(appOf(framework, new TypeError("findBusiness returned an array")));
    expect(lines()).toEqual([
      `countersign: exampleGuard refused a GET with 500 unexpected-error: TypeError "findBusiness returned an array"; see ${page}#unexpected-error`,
    ]);
  });

  test("a message of several lines is one", async () => {
    const cause = new Error("\n\nInvalid `prisma.$queryRaw()` invocation:\r\n\n  Raw query failed\n");
    await ask(appOf(framework, refusal({ message: "no answer", cause })));
    expect(lines()[0]).toContain(
      '"no answer", caused by Error "Invalid `prisma.$queryRaw()` invocation: Raw query failed"; see',
    );
  });

  test("the key of a handler that threw is on its line", async () => {
    const app = framework();
    app.set("env", "test");
    const pay = guard("idempotencyGuard", (req) => {
      verdicts.note(req, { keyid: "service-1", idempotencyKey: "op-1" });
      throw new TypeError("the ledger is down");
    });
    app.use("/secret-path", pay);
    app.use(ownAnswer);
    await ask(app);
    expect(lines()).toEqual([
      'countersign: idempotencyGuard refused a GET with 500 unexpected-error: TypeError "the ledger is down"; ' +
        `keyid "service-1", key "op-1"; see ${page}#unexpected-error`,
    ]);
  });

  test("a refusal that a handler throws is one, behind the guards that have passed", async () => {
    const app = framework();
    const lost = refusal({
      status: 503,
      code: "idempotency-lost",
      message: "the key is another attempt's",
      cause: new Error("the lease ended before its handler did"),
    });
    app.get(
      "/secret-path",
      guard("exampleGuard", () => undefined),
      () => {
        throw lost;
      },
    );
    app.use(guardErrors());
    await ask(app);
    expect(lines()).toEqual([
      'countersign: guardErrors refused a GET with 503 idempotency-lost: "the key is another attempt\'s", caused by Error "the lease ended before ' +
        `its handler did"; see ${page}#idempotency-lost`,
    ]);
  });

  test("nothing of the caller's can forge a line, or flood one", async () => {
    const message = `keyid \u001b[31m\ncountersign: all is well "${"x".repeat(5_000)}`;
    const cause = new Error(`at postgres://payer:p@ss-word@db/pay: ${"y".repeat(5_000)}`);
    await ask(appOf(framework, refusal({ message, cause, code: "a\nb" })));
    const [line] = lines() as [string];
    expect(line).toMatch(/^countersign: exampleGuard refused a GET with 401 unknown-code: "keyid \\u001b/);
    expect(line).toMatch(/^[\x20-\x7e]{1,1200}$/);
    expect(line).not.toMatch(/ss-word|hidden|secret-path/);
  });

  test("nothing of a request's method can either", () => {
    const refuse = guard("exampleGuard", () => {
      throw refusal();
    });
    for (const method of ["M".repeat(20_000), "GET\u001b[31m\n", undefined]) {
      const req = { method, complete: true } as unknown as GuardRequest;
      refuse(req, {} as GuardResponse, nothing);
    }
    const line = `countersign: exampleGuard refused a request with 401 signature-mismatch: "the signature does not verify"; see ${page}#signature-mismatch`;
    expect(lines()).toEqual([line, line, line]);
  });

  test("ten lines a minute for each code, then one that counts the rest", async () => {
    const app = appOf(framework, refusal());
    for (let count = 0; count < 25; count += 1) await ask(app);
    await ask(appOf(framework, refusal({ code: "nonce-replayed" })));
    expect(lines()).toHaveLength(11);
    expect(lines().at(-1)).toContain("nonce-replayed");
    minutes += 1;
    await ask(app);
    expect(lines().slice(11)).toEqual([
      "countersign: 15 more lines with signature-mismatch were left out within a minute",
      expect.stringContaining("refused a GET with 401 signature-mismatch"),
    ]);
  });

  test.each<[string, ErrorMiddleware]>([
    ["guardErrors({ onReject })", guardErrors({ onReject: nothing })],
    ["guardErrors({ onReject, hide: true })", guardErrors({ onReject: nothing, hide: true })],
  ])("no line where %s has heard of it", async (_name, answer) => {
    await ask(appOf(framework, refusal(), answer));
    expect(lines()).toEqual([]);
  });

  test.each<[string, ErrorMiddleware]>([
    ["guardErrors()", guardErrors()],
    ["guardErrors({ hide: true })", guardErrors({ hide: true })],
  ])("a line behind %s", async (_name, answer) => {
    await ask(appOf(framework, refusal(), answer));
    expect(lines()).toHaveLength(1);
  });

  test("no line for a client that left, or for a request that passed", async () => {
    const abandoned = framework();
    const waits = async (_req: GuardRequest, res: GuardResponse): Promise<void> => {
      await once(res, "close");
      throw refusal({ code: requestAborted });
    };
    abandoned.use(guard("exampleGuard", waits));
    await withServer(abandoned, async (port) => {
      const socket = connect({ port, host: "127.0.0.1" });
      socket.write("GET /secret-path HTTP/1.1\r\nHost: a\r\n\r\n");
      await delay(50);
      socket.destroy();
      await delay(50);
    });
    const app = framework();
    app.use(guard("exampleGuard", nothing), (_req, res) => void res.end());
    await ask(app);
    expect(lines()).toEqual([]);
  });

  test("none with COUNTERSIGN_STDERR=off, and no other value hides one", async () => {
    process.env["COUNTERSIGN_STDERR"] = "off";
    await ask(appOf(framework, refusal()));
    expect(lines()).toEqual([]);
    process.env["COUNTERSIGN_STDERR"] = "of";
    await ask(appOf(framework, refusal()));
    expect(lines()).toHaveLength(1);
  });

  test("none with a subscriber", async () => {
    subscribe(guardChannelName, nothing);
    try {
      await ask(appOf(framework, refusal()));
    } finally {
      unsubscribe(guardChannelName, nothing);
    }
    expect(lines()).toEqual([]);
  });

  test("an error or a console that throws changes no answer", async () => {
    const unreadable = new Error("x");
    Object.defineProperty(unreadable, "message", {
      get(): string {
        throw new Error("not readable");
      },
    });
    await supertest(appOf(framework, unreadable)).get("/secret-path").expect(400);
    expect(lines()).toEqual([expect.stringContaining("an error that cannot be read")]);
    consoleError.mockImplementation(() => {
      throw new Error("replaced");
    });
    await supertest(appOf(framework, refusal())).get("/secret-path").expect(400);
  });
});

describe("publishFailure", () => {
  const notice = {
    guard: "createWebhookHandler",
    code: "event-failed",
    message: 'key "evt_1" has a failed attempt',
    error: new Error("the ledger is closed"),
  };

  test("is one line on stderr, with the error, where nobody listens", () => {
    publishFailure(notice);
    expect(lines()).toEqual([
      String.raw`countersign: createWebhookHandler event-failed: "key \"evt_1\" has a failed attempt": Error "the ledger is closed"; see ${page}#event-failed`,
    ]);
  });

  test("is a notice alone where somebody does", () => {
    const heard: unknown[] = [];
    const listen = (message: unknown): void => void heard.push(message);
    subscribe(noticeChannelName, listen);
    try {
      publishFailure(notice);
    } finally {
      unsubscribe(noticeChannelName, listen);
    }
    expect({ heard, lines: lines() }).toEqual({ heard: [notice], lines: [] });
  });

  test("a hundred codes share what a flood of made-up ones may write", () => {
    for (let count = 0; count < 500; count += 1) publishFailure({ ...notice, code: `made-up-${count}` });
    expect(lines().length).toBeLessThanOrEqual(110);
    // The page's own codes are not among those that share.
    publishFailure({ ...notice, code: "event-timed-out" });
    expect(lines().at(-1)).toContain(" event-timed-out: ");
  });
});

test.each(["express", "express4"])(
  "a process on %s writes its lines, and no count keeps it alive",
  async (framework) => {
    const program = `
    import { once } from "node:events";
    import express from ${JSON.stringify(framework)};
    import { GuardError } from "@countersign/core";
import { guard, guardErrors } from "@countersign/express";
    const app = express();
    app.use(guard("exampleGuard", () => {
      throw new GuardError({ status: 401, code: "signature-mismatch", message: "does not verify" });
    }));
    app.use(guardErrors());
    const server = app.listen(0, "127.0.0.1");
    await once(server, "listening");
    const url = "http://127.0.0.1:" + server.address().port;
    for (let count = 0; count < 12; count++) {
      const { status } = await fetch(url, { headers: { connection: "close" } });
      if (status !== 401) process.exitCode = 1;
    }
    server.close();
  `;
    const { COUNTERSIGN_STDERR: _off, ...env } = process.env;
    const args = ["--input-type=module", "--eval", program];
    const { stderr } = await run(process.execPath, args, { cwd: import.meta.dirname, env, timeout: 35_000 });
    const line = `countersign: exampleGuard refused a GET with 401 signature-mismatch: "does not verify"; see ${page}#signature-mismatch`;
    expect(stderr.trimEnd().split("\n")).toEqual(Array.from({ length: 10 }, () => line));
  },
);
