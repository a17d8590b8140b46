import { once } from "node:events";
import type { AddressInfo } from "node:net";
import type { GuardRequest } from "@countersign/express";
import { memoryNonceStore } from "@countersign/http-signature-verify";
import { memoryIdempotencyStore } from "@countersign/idempotency";
import { payoutEndpoint, payoutOf, type Payout, type PayoutEndpointOptions } from "countersign/payout";
import type { Express, NextFunction, Request, Response } from "express";
import express4 from "express4";
import request from "supertest";
import { expressVersionsWith, type ExpressFactory } from "@countersign/test-support/runs/express-versions.ts";
import { withOverrides, type Overrides } from "@countersign/test-support/runs/sections.ts";
import { payoutBody } from "./payout-body.ts";
import { createHandSigner, signByHand, type HandSigned, type HandSigner } from "./sign-by-hand.ts";

export const expressVersions = expressVersionsWith(express4);

export const path = "/api/v1/transaction";
export const signer: HandSigner = createHandSigner("lender-1");

/** The options of a platform whose stores are new. */
export function optionsWith(overrides: Overrides<PayoutEndpointOptions> = {}): PayoutEndpointOptions {
  const usual: PayoutEndpointOptions = {
    addresses: { allow: ["127.0.0.1", "::1"] },
    signature: { keys: { [signer.keyid]: signer.publicKeyPem }, nonces: memoryNonceStore({ max: 10_000 }) },
    idempotency: { store: memoryIdempotencyStore({ max: 10_000 }) },
    referenceField: "reference",
  };
  return withOverrides(usual, overrides);
}

export interface Platform {
  readonly app: Express;
  readonly paid: Payout[];
  /** The codes of what was refused, as onReject saw them. */
  readonly codes: unknown[];
  readonly appErrors: unknown[];
}

/** An app whose payout route records what it pays. */
export function platformOn(
  framework: ExpressFactory,
  overrides: Overrides<PayoutEndpointOptions> = {},
  handler?: (req: Request) => unknown,
): Platform {
  const app = framework();
  const paid: Payout[] = [];
  const codes: unknown[] = [];
  const appErrors: unknown[] = [];
  const onReject = (error: unknown): void => void codes.push(codeOf(error));
  const own = overrides.errors === "forward" ? {} : { onReject };
  // Express 4 does not see a rejection.
  const pay = async (req: Request, res: Response, next: NextFunction): Promise<void> => {
    try {
      await handler?.(req);
      paid.push(payoutOf(req));
      res.status(200).json({ acknowledged: true });
    } catch (error) {
      next(error);
    }
  };
  app.post(
    path,
    payoutEndpoint(optionsWith({ ...own, ...overrides })),
    (req: Request, res: Response, next: NextFunction) => void pay(req, res, next),
  );
  app.use((error: unknown, _req: GuardRequest, res: Response, _next: unknown) => {
    appErrors.push(error);
    res.status(500).json({ app: true });
  });
  return { app, paid, codes, appErrors };
}

export function codeOf(error: unknown): unknown {
  return error instanceof Error && "code" in error ? error.code : error;
}

/** Sends `body`, signed unless `headers` say otherwise. */
export function send(
  app: Express | string,
  body: unknown = payoutBody,
  headers?: Partial<HandSigned> | Record<string, string>,
): request.Test {
  const bytes = typeof body === "string" ? body : JSON.stringify(body);
  const signed = headers ?? signByHand(signer, { path, body: bytes });
  return request(app)
    .post(path)
    .set({ "Content-Type": "application/json", ...signed })
    .send(bytes);
}

/** Listens on loopback for as long as `work` runs. */
export async function listening<T>(app: Express, work: (origin: string) => Promise<T>): Promise<T> {
  const server = app.listen(0, "127.0.0.1");
  await once(server, "listening");
  try {
    return await work(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}
