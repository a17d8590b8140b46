import { IncomingMessage } from "node:http";
import { Socket } from "node:net";
import { isGuardError, type GuardError } from "@countersign/core";
import { guardErrors, type GuardRequest, type Middleware } from "@countersign/express";
import type { Express } from "express";
import express4 from "express4";
import { expressVersionsWith, type ExpressFactory } from "@countersign/test-support/runs/express-versions.ts";
import { recordRefusals } from "@countersign/test-support/runs/refusals.ts";

export const expressVersions = expressVersionsWith(express4);

/** An app whose one route runs `chain`, the error responder behind it, and the refusals that reached it. */
export function appWith(
  framework: ExpressFactory,
  ...chain: readonly Middleware[]
): { app: Express; refusals: GuardError[]; handled: (Buffer | undefined)[] } {
  const { refusals, onReject } = recordRefusals();
  const handled: (Buffer | undefined)[] = [];
  const app = framework();
  app.post("/payouts", ...chain, (req, res) => {
    handled.push(req.rawBody);
    res.sendStatus(204);
  });
  app.use(guardErrors({ onReject }));
  return { app, refusals, handled };
}

/** A request outside any server, with these lines of Content-Digest and, if given, a body to read. */
export function requestOf(contentDigestLines: readonly string[], body?: Buffer): GuardRequest {
  const req: GuardRequest = new IncomingMessage(new Socket());
  req.httpVersionMajor = 1;
  for (const line of contentDigestLines) req.rawHeaders.push("Content-Digest", line);
  if (body !== undefined) {
    req.push(body);
    req.push(null);
  }
  return req;
}

/** The GuardError that `work` throws; any other outcome fails. */
export function refusalOf(work: () => void): GuardError {
  try {
    work();
  } catch (error) {
    if (isGuardError(error)) return error;
    throw error;
  }
  throw new Error("nothing was refused");
}
