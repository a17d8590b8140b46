// The single middlewares in an order in which strangers could claim a payer's keys: an error at the first request, and no payout.
import type { Server } from "node:http";
import { afterEach, describe, expect, test } from "@jest/globals";
import { guardErrors, type Middleware } from "@countersign/express";
import { httpSignatureVerify, memoryNonceStore } from "@countersign/http-signature-verify";
import { memoryIdempotencyStore } from "@countersign/idempotency";
import { idempotencyGuard } from "@countersign/idempotency-guard";
import { ipAllowlist } from "@countersign/ip-allowlist";
import { jsonBody, rawBody } from "@countersign/raw-body";
import { webhookBasicAuth } from "@countersign/webhook-basic-auth";
import { webhookHmac } from "@countersign/webhook-hmac";
import express from "express";
import { close, listen, send } from "../support/servers/http-client.ts";
import { samplePath, signRequest } from "../support/signers/independent-signer.ts";
import { servicePublicPem } from "../support/signers/test-keys.ts";

const running: Server[] = [];
afterEach(async () => {
  await Promise.all(running.splice(0).map(close));
});

const checks: readonly (readonly [string, () => Middleware])[] = [
  [
    "httpSignatureVerify",
    () => httpSignatureVerify({ keys: { "test-key-ed25519": servicePublicPem }, nonces: memoryNonceStore() }),
  ],
  ["ipAllowlist", () => ipAllowlist({ allow: ["127.0.0.1"] })],
  ["webhookBasicAuth", () => webhookBasicAuth({ username: "test-user", password: "test-password" })],
  ["webhookHmac", () => webhookHmac({ secrets: ["test-secret-test-secret-test-secret"] })],
];

describe("idempotencyGuard() before a check", () => {
  test.each(checks)(
    "%s refuses every request as misplaced, and no key is left behind",
    async (name, check) => {
      const store = memoryIdempotencyStore();
      const key = (): unknown => "op.from.to";
      const codes: string[] = [];
      let runs = 0;
      const app = express();
      app.post(samplePath, rawBody(), jsonBody(), idempotencyGuard({ store, key }), check(), (_req, res) => {
        runs += 1;
        res.json({});
      });
      app.use(
        guardErrors({
          onReject: (error) => void codes.push(`${Reflect.get(Object(error), "code")}: ${String(error)}`),
        }),
      );
      const { server, port } = await listen(app);
      running.push(server);
      const answer = await send(port, signRequest());
      expect(answer.status).toBe(500);
      expect(codes).toEqual([expect.stringMatching(`^checked-after-claim: .*${name}\\(\\) runs after`)]);
      expect(runs).toBe(0);
      expect(store.read("op.from.to")).toBeUndefined();
    },
  );
});
