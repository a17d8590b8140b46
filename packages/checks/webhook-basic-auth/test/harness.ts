import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import type { GuardError } from "@countersign/core";
import { guardErrors, type GuardRequest, type Middleware } from "@countersign/express";
import { verifiedCredential, type VerifiedCredential } from "@countersign/webhook-basic-auth";
import type { Express } from "express";
import express4 from "express4";
import { expressVersionsWith, type ExpressFactory } from "@countersign/test-support/runs/express-versions.ts";
import { close, listen, send, type WireAnswer } from "@countersign/test-support/servers/http-client.ts";
import { recordRefusals } from "@countersign/test-support/runs/refusals.ts";

export const expressVersions = expressVersionsWith(express4);

interface Passage {
  readonly webhook: Express.WebhookVerification | undefined;
  readonly credential: VerifiedCredential | undefined;
  readonly hasReadBody: boolean;
}

export interface Site {
  readonly app: Express;
  readonly refusals: GuardError[];
  readonly passages: Passage[];
}

export function siteWith(framework: ExpressFactory, ...guards: readonly Middleware[]): Site {
  const { refusals, onReject } = recordRefusals();
  const passages: Passage[] = [];
  const app = framework();
  app.use("/hook", ...guards, (req, res) => {
    passages.push({
      webhook: req.webhook,
      credential: verifiedCredential(req),
      hasReadBody: req.readableDidRead,
    });
    res.sendStatus(204);
  });
  app.use(guardErrors({ onReject }));
  return { app, refusals, passages };
}

/** Posts to the guarded route with exactly these Authorization lines. */
export async function post(app: Express, ...authorization: readonly string[]): Promise<WireAnswer> {
  const { server, port } = await listen(app);
  const headers = authorization.flatMap((line) => ["Authorization", line]);
  try {
    return await send(port, { method: "POST", path: "/hook", headers, body: Buffer.from("{}") });
  } finally {
    await close(server);
  }
}

export function basic(username: string, password: string): string {
  return `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}`;
}

export function requestOf(authorization: readonly string[]): GuardRequest {
  const req: GuardRequest = new IncomingMessage(new Socket());
  for (const line of authorization) req.rawHeaders.push("Authorization", line);
  return req;
}

/** Runs one middleware: undefined when it passed, else what it gave to next. */
export function run(middleware: Middleware, req: GuardRequest): Promise<unknown> {
  return new Promise((resolve) => middleware(req, new ServerResponse(req), resolve));
}
