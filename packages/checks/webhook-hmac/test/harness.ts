import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import type { GuardError } from "@countersign/core";
import { guardErrors, type GuardRequest, type Middleware } from "@countersign/express";
import { verifiedPayload, type VerifiedPayload } from "@countersign/webhook-hmac";
import type { Express, RequestHandler } from "express";
import express4 from "express4";
import { expressVersionsWith, type ExpressFactory } from "@countersign/test-support/runs/express-versions.ts";
import { close, listen, send, type WireAnswer } from "@countersign/test-support/servers/http-client.ts";
import { recordRefusals } from "@countersign/test-support/runs/refusals.ts";

export const expressVersions = expressVersionsWith(express4);

interface Passage {
  readonly webhook: Express.WebhookVerification | undefined;
  readonly payload: VerifiedPayload | undefined;
  readonly rawBody: Buffer | undefined;
}

export interface Site {
  readonly app: Express;
  readonly refusals: GuardError[];
  readonly passages: Passage[];
}

export function siteWith(
  framework: ExpressFactory,
  ...guards: readonly (Middleware | RequestHandler)[]
): Site {
  const { refusals, onReject } = recordRefusals();
  const passages: Passage[] = [];
  const app = framework();
  app.use("/hook", ...guards, (req, res) => {
    passages.push({ webhook: req.webhook, payload: verifiedPayload(req), rawBody: req.rawBody });
    res.sendStatus(204);
  });
  app.use(guardErrors({ onReject }));
  return { app, refusals, passages };
}

/** Posts `body` to the guarded route with exactly these header lines, names and values in turn. */
export async function post(app: Express, headers: readonly string[], body: Buffer): Promise<WireAnswer> {
  const { server, port } = await listen(app);
  try {
    return await send(port, { method: "POST", path: "/hook", headers, body });
  } finally {
    await close(server);
  }
}

/** A request outside any server, with these lines of X-Payload-Signature and a body to read. */
export function requestOf(lines: readonly string[], body: Uint8Array): GuardRequest {
  const req: GuardRequest = new IncomingMessage(new Socket());
  req.httpVersionMajor = 1;
  for (const line of lines) req.rawHeaders.push("X-Payload-Signature", line);
  if (body.length > 0) req.push(Buffer.from(body));
  req.push(null);
  return req;
}

/** Runs one middleware: undefined when it passed, else what it gave to next. */
export function run(middleware: Middleware, req: GuardRequest): Promise<unknown> {
  return new Promise((resolve) => middleware(req, new ServerResponse(req), resolve));
}
