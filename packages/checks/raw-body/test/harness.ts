import { IncomingMessage } from "node:http";
import { Socket } from "node:net";
import { isGuardError } from "@countersign/core";
import { guardErrors, type GuardRequest, type Middleware } from "@countersign/express";
import type { Express } from "express";
import express4 from "express4";
import { expressVersionsWith, type ExpressFactory } from "@countersign/test-support/runs/express-versions.ts";

export const expressVersions = expressVersionsWith(express4);

export interface Seen {
  readonly bodies: (Buffer | undefined)[];
  readonly values: unknown[];
  readonly codes: unknown[];
}

/** An app whose one route runs `chain`, with a record of what came out of it. */
export function appWith(
  framework: ExpressFactory,
  ...chain: readonly Middleware[]
): { app: Express; seen: Seen } {
  const seen: Seen = { bodies: [], values: [], codes: [] };
  const app = framework();
  app.post("/payouts", ...chain, (req, res) => {
    seen.bodies.push(req.rawBody);
    // Reading another type's body, for which no parser is mounted, is refused.
    if (req.is("application/json") !== false) seen.values.push(req.body);
    res.sendStatus(204);
  });
  app.use(guardErrors({ onReject: (error) => seen.codes.push(isGuardError(error) ? error.code : error) }));
  return { app, seen };
}

/** A request outside any server. `chunks` are what the connection delivers; without them it stays silent. */
export function requestOf(
  headers: Readonly<Record<string, string>>,
  chunks?: readonly (string | Buffer)[],
): GuardRequest {
  const req: GuardRequest = new IncomingMessage(new Socket());
  req.httpVersionMajor = 1;
  for (const [name, value] of Object.entries(headers)) {
    req.rawHeaders.push(name, value);
    req.headers[name.toLowerCase()] = value;
  }
  if (chunks !== undefined) {
    for (const chunk of chunks) req.push(chunk);
    req.push(null);
  }
  return req;
}
