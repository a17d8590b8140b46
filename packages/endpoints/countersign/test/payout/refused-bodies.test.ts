import {
  Agent,
  createServer,
  request as httpRequest,
  type IncomingMessage,
  type RequestListener,
} from "node:http";
import { once } from "node:events";
import { isGuardError } from "@countersign/core";
import { guardErrors, type Middleware } from "@countersign/express";
import { httpSignatureVerify, memoryNonceStore } from "@countersign/http-signature-verify";
import { ipAllowlist } from "@countersign/ip-allowlist";
import { payoutEndpoint } from "countersign/payout";
import { jsonBody, rawBody } from "@countersign/raw-body";
import { describe, expect, test } from "@jest/globals";
import type { ErrorRequestHandler } from "express";
import { framed, onOneConnection } from "@countersign/test-support/servers/one-connection.ts";
import { withServer } from "@countersign/test-support/servers/wire.ts";
import { expressVersions, optionsWith, signer } from "./platform.ts";

const path = "/payouts";
const next = "GET /next HTTP/1.1\r\nHost: platform.example\r\n\r\n";
// More than Node buffers by itself, so that an unread rest stands on the wire.
const body = "x".repeat(300_000);
const limit = "2kb";
const signature = {
  keys: { [signer.keyid]: signer.publicKeyPem },
  nonces: memoryNonceStore({ max: 10 }),
  limit,
};

interface Refusal {
  readonly status: number;
  readonly guards: readonly Middleware[];
  readonly headers?: readonly string[];
}

const refusals: [title: string, refusal: Refusal][] = [
  ["413 by rawBody", { status: 413, guards: [rawBody({ limit })] }],
  ["415 by rawBody", { status: 415, guards: [rawBody()], headers: ["Content-Encoding: gzip"] }],
  ["415 by jsonBody", { status: 415, guards: [rawBody({ limit: "1mb" }), jsonBody()] }],
  [
    "400 by jsonBody",
    {
      status: 400,
      guards: [rawBody({ limit: "1mb" }), jsonBody()],
      headers: ["Content-Type: application/json"],
    },
  ],
  ["401 by httpSignatureVerify", { status: 401, guards: [httpSignatureVerify(signature)] }],
  ["401 by ipAllowlist", { status: 401, guards: [ipAllowlist({ allow: ["192.0.2.1"] })] }],
  ["401 by payoutEndpoint", { status: 401, guards: [payoutEndpoint(optionsWith({ errors: "forward" }))] }],
];

// What people write: it knows nothing of the header fields that a refusal carries.
const ownAnswer: ErrorRequestHandler = (error: unknown, _req, res, _next) => {
  res.status(isGuardError(error) ? error.status : 500).json({ refused: true });
};
const answers: [title: string, answer: ErrorRequestHandler | undefined][] = [
  ["guardErrors()", guardErrors()],
  ["the app's own handler", ownAnswer],
  ["Express itself", undefined],
];

type AppOf = (refusal: Refusal, answer: ErrorRequestHandler | undefined) => RequestListener;

const expressApps = expressVersions.map(([version, factory]): [string, AppOf] => [
  version,
  ({ guards }, answer) => {
    const app = factory();
    app.set("env", "test");
    app.get("/next", (_req, res) => void res.sendStatus(204));
    app.post(path, ...guards, (_req, res) => void res.sendStatus(200));
    if (answer !== undefined) app.use(answer);
    return app;
  },
]);

const nodeApp: AppOf =
  ({ guards }) =>
  (req, res) => {
    const pending = [...guards];
    const advance = (error?: unknown): void => {
      const guard = error === undefined ? pending.shift() : undefined;
      if (guard !== undefined) return guard(req, res, advance);
      res.statusCode = isGuardError(error) ? error.status : 200;
      res.end();
    };
    if (req.url === "/next") res.writeHead(204).end();
    else advance();
  };

const rows = [
  ...expressApps.flatMap(([server, appOf]) =>
    answers.map(([name, answer]) => ({ server, appOf, name, answer })),
  ),
  { server: "node:http", appOf: nodeApp, name: "its own listener", answer: undefined },
];

describe.each(rows)("a refusal on $server, answered by $name", ({ appOf, answer }) => {
  describe.each(refusals)("%s", (_title, refusal) => {
    test.each([
      ["fixed", true],
      ["fixed", false],
      ["chunked", true],
      ["chunked", false],
      ["expect", false],
    ] as const)(
      "leaves no connection in silence: body %s, next request pipelined: %s",
      async (framing, pipelined) => {
        const first = framed(framing, { path, body, headers: refusal.headers ?? [] });
        const end = await withServer(appOf(refusal, answer), (port) =>
          onOneConnection(port, first, { next, pipelined }),
        );
        // A reset can overtake the answer while the client still writes.
        if (end.closed) expect([[], [refusal.status]]).toContainEqual(end.statuses);
        else expect(end.statuses).toEqual([refusal.status, 204]);
      },
    );
  });

  test("lets a keep-alive agent go on", async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const server = createServer(appOf({ status: 413, guards: [rawBody({ limit })] }, answer)).listen(
      0,
      "127.0.0.1",
    );
    await once(server, "listening");
    const { port } = server.address() as { port: number };
    const ask = async (
      method: string,
      target: string,
      chunks: readonly string[],
    ): Promise<number | undefined> => {
      const outgoing = httpRequest({ host: "127.0.0.1", port, method, path: target, agent });
      for (const chunk of chunks) outgoing.write(chunk);
      outgoing.end();
      const [incoming] = (await once(outgoing, "response")) as [IncomingMessage];
      await once(incoming.resume(), "end");
      return incoming.statusCode;
    };
    try {
      const chunks = body.match(/x{1,30000}/g) ?? [];
      expect(await ask("POST", path, chunks)).toBe(413);
      expect(await ask("GET", "/next", [])).toBe(204);
    } finally {
      agent.destroy();
      server.closeAllConnections();
      server.close();
    }
  });
});
