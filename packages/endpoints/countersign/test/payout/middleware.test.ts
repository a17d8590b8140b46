import { setTimeout as delay } from "node:timers/promises";
import { captureRawBody } from "@countersign/raw-body";
import { GuardError } from "@countersign/core";
import { guardErrors } from "@countersign/express";
import { memoryIdempotencyStore } from "@countersign/idempotency";
import { payoutEndpoint, payoutOf, payoutStoreKey } from "countersign/payout";
import { describe, expect, test } from "@jest/globals";
import type { NextFunction, Request, Response } from "express";
import request from "supertest";
import { payoutBody, payoutWith } from "./payout-body.ts";
import {
  codeOf,
  listening,
  optionsWith,
  path,
  platformOn,
  send,
  signer,
  expressVersions,
} from "./platform.ts";
import { createHandSigner, signByHand } from "./sign-by-hand.ts";

const bodyText = JSON.stringify(payoutBody);

describe.each(expressVersions)("payoutEndpoint on %s", (_version, framework) => {
  test("runs the handler with the payout of a signed request", async () => {
    const { app, paid } = platformOn(framework);
    const text = bodyText.replace('"value":10.1', '"value":10.10');
    await send(app, text).expect(200, { acknowledged: true });
    expect(paid).toHaveLength(1);
    expect(paid[0]).toMatchObject({
      idempotencyKey: "op_1.acc_from.acc_to",
      idempotencyKeyParts: ["op_1", "acc_from", "acc_to"],
      businessId: "biz_1",
      beneficiary: { iban: "DE89370400440532013000", bic: "COBADEFFXXX", name: "Example Trading GmbH" },
      amount: { value: 10.1, currency: "EUR" },
      reference: "Funding 1",
      business: undefined,
      body: payoutBody,
    });
    expect(paid[0]?.amountText("/value")).toBe("10.10");
    expect(paid[0]?.amountText("/currency")).toBe("EUR");
    expect(paid[0]?.amountText("/none")).toBeUndefined();
    expect(() => paid[0]?.amountText("value")).toThrow(TypeError);
  });

  test("pays a key once across two signing keys", async () => {
    const next = createHandSigner("lender-2");
    const keys = { [signer.keyid]: signer.publicKeyPem, [next.keyid]: next.publicKeyPem };
    const { app, paid } = platformOn(framework, { signature: { keys } });
    await send(app).expect(200);
    await send(app, bodyText, signByHand(next, { path, body: bodyText })).expect(409);
    expect(paid).toHaveLength(1);
  });

  test("pays one of 200 concurrent identical payouts and says 409 only after the commit", async () => {
    let committed = false;
    const answers: { readonly status: number; readonly committed: boolean }[] = [];
    const { app, paid } = platformOn(framework, { idempotency: { waitMs: 1000 } }, async () => {
      await delay(100);
      committed = true;
    });
    await listening(app, async (origin) => {
      await Promise.all(
        Array.from({ length: 200 }, async () => {
          const { status } = await send(origin);
          answers.push({ status, committed });
        }),
      );
    });
    expect(paid).toHaveLength(1);
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
    expect(answers.every(({ status }) => [200, 409, 503].includes(status))).toBe(true);
    expect(answers.some(({ status }) => status === 409)).toBe(true);
    expect(answers.filter((answer) => answer.status === 409 && !answer.committed)).toEqual([]);
  });

  test("checks the signature before the schema, and the address before the signature", async () => {
    const broken = JSON.stringify({});
    const forged = { ...signByHand(createHandSigner(signer.keyid), { path, body: broken }) };
    const { app, codes } = platformOn(framework);
    await send(app, broken, forged).expect(401);
    const elsewhere = platformOn(framework, { addresses: { allow: ["192.0.2.1"] } });
    await send(elsewhere.app, broken, forged).expect(401);
    expect([...codes, ...elsewhere.codes]).toEqual(["signature-mismatch", "ip-not-allowed"]);
  });

  test("pays the same key once in each scope, and drains", async () => {
    const store = memoryIdempotencyStore({ max: 10 });
    const platforms = ["eu", "us"].map((scope) => platformOn(framework, { idempotency: { store, scope } }));
    for (const { app } of platforms) await send(app).expect(200);
    for (const { app } of platforms) await send(app).expect(409);
    expect(store.read(payoutStoreKey("op_1.acc_from.acc_to", "us"))).toMatchObject({ state: "done" });
    expect(platforms.map(({ paid }) => paid.length)).toEqual([1, 1]);

    const endpoint = payoutEndpoint(optionsWith());
    expect(await endpoint.drain({ timeoutMs: 1_000 })).toEqual({ keys: 0, claims: 0 });
  });

  test("takes the longest key with its prefix", async () => {
    const { app } = platformOn(framework, { maxLengths: { idempotencyKey: 505 } });
    await send(app, payoutWith("/idempotency_key", `${"x".repeat(501)}.a.b`)).expect(200);
    await send(app, payoutWith("/idempotency_key", `${"x".repeat(502)}.a.b`)).expect(400);
  });

  test.each([
    ["app.post", path],
    ["router.post", "/api"],
    ["app.use", path],
  ])("answers its rejections and not the handler's when mounted by %s", async (kind, mount) => {
    const app = framework();
    const chain = payoutEndpoint(optionsWith());
    const pay = (): never => {
      throw new GuardError({ status: 418, code: "handler", message: "thrown by the handler" });
    };
    if (kind === "app.post") app.post(mount, chain, pay);
    else if (kind === "app.use") app.use(mount, chain, pay);
    else {
      const router = framework.Router();
      router.post("/v1/transaction", chain, pay);
      app.use(mount, router);
    }
    app.use((error: Error, _req: unknown, res: Response, _next: unknown) => {
      res.status(500).json({ app: error.message });
    });
    await send(app, bodyText, {}).expect(401);
    await send(app).expect(500, { app: "thrown by the handler" });
  });

  test("leaves its rejections to the app with errors: forward", async () => {
    const seen: unknown[] = [];
    const app = framework();
    app.post(
      path,
      payoutEndpoint(optionsWith({ errors: "forward" })),
      (_req: Request, res: Response) => void res.end(),
    );
    app.use(guardErrors({ onReject: (error) => seen.push(error) }));
    await send(app, bodyText, {}).expect(401);
    await send(app).expect(200);
    expect(seen).toHaveLength(1);
  });

  test("tells payloads apart by the verified bytes, not by what was written to req.rawBody", async () => {
    const codes: unknown[] = [];
    const app = framework();
    app.use(framework.json({ verify: captureRawBody }));
    app.use((req: Request, _res: Response, next: NextFunction) => {
      req.rawBody = Buffer.from(String(codes.length));
      next();
    });
    const onReject = (error: unknown): void => void codes.push(codeOf(error));
    app.post(
      path,
      payoutEndpoint(optionsWith({ onReject })),
      (_req: Request, res: Response) => void res.end(),
    );
    await send(app).expect(200);
    await send(app).expect(409);
    await send(app).expect(409);
    await send(app, payoutWith("/amount", { value: 99 })).expect(409);
    expect(codes).toEqual(["already-processed", "already-processed", "idempotency-key-reused"]);
  });

  test("never takes req.payout of another middleware for a checked payout", async () => {
    const app = framework();
    app.post(path, (req: Request, res: Response) => {
      Object.assign(req, { payout: { idempotencyKey: "a.b.c" } });
      expect(() => payoutOf(req)).toThrow("mount payoutEndpoint");
      res.end();
    });
    await request(app).post(path).expect(200);
  });
});
