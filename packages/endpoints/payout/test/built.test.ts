import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { generateKeyPairSync } from "node:crypto";
import { expect, test } from "@jest/globals";
import { builtChannelName } from "@countersign/core";
import { memoryNonceStore } from "@countersign/http-signature-verify";
import { memoryIdempotencyStore } from "@countersign/idempotency";
import { payoutEndpoint } from "@countersign/payout";

test("payoutEndpoint tells on countersign:built what it was built with", () => {
  const built: unknown[] = [];
  const hear = (message: unknown): void => void built.push(message);
  subscribe(builtChannelName, hear);
  // TEST KEY.
  const { publicKey } = generateKeyPairSync("ed25519");
  payoutEndpoint({
    addresses: { allow: ["192.0.2.1", "192.0.2.0/28"] },
    signature: {
      keys: { "service-1": publicKey.export({ type: "spki", format: "pem" }).toString() },
      nonces: memoryNonceStore(),
    },
    idempotency: { store: memoryIdempotencyStore({ retentionMs: 5000 }) },
    findBusiness: () => true,
  });
  unsubscribe(builtChannelName, hear);
  const factory = "payoutEndpoint";
  expect(built).toEqual([
    { built: "memoryNonceStore", factory: "memoryNonceStore", facts: { allowInProduction: false } },
    {
      built: "memoryIdempotencyStore",
      factory: "memoryIdempotencyStore",
      facts: { allowInProduction: false },
    },
    { built: factory, factory, facts: { findBusiness: true, referenceField: null } },
    { built: "ipAllowlist", factory, facts: { rules: 2, dangerouslyAllowAnyAddress: false } },
    {
      built: "httpSignatureVerify",
      factory,
      facts: {
        requiredComponents: ["@method", "@path", "content-type", "content-digest"],
        requiredParameters: expect.arrayContaining(["created", "expires", "keyid", "nonce"]),
        windowSeconds: 60,
        algorithms: ["ed25519"],
        allowUnsignedBody: false,
        allowUnsignedQuery: false,
        nonces: true,
        keys: [
          {
            keyid: "service-1",
            alg: "ed25519",
            thumbprint: expect.stringMatching(/^[\w-]{43}$/),
            notBefore: null,
            notAfter: null,
            revokedAt: null,
          },
        ],
      },
    },
    {
      built: "idempotencyGuard",
      factory,
      facts: { scope: null, recovery: "hold", leaseMs: 30_000, retentionMs: 5000, lists: true },
    },
  ]);
  // What goes to another process has to be JSON.
  expect(JSON.parse(JSON.stringify(built))).toEqual(built);
});
