import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { expect, test } from "@jest/globals";
import { builtChannelName } from "@countersign/core";
import {
  httpSignatureVerify,
  importVerificationKey,
  memoryNonceStore,
} from "@countersign/http-signature-verify";

test("what was built with a shared secret is told without a thumbprint of it", () => {
  // TEST SECRET.
  const secret = Buffer.alloc(32, "test");
  const key = importVerificationKey("shared-1", secret, { alg: "hmac-sha256" });
  const built: unknown[] = [];
  const hear = (message: unknown): void => void built.push(message);
  subscribe(builtChannelName, hear);
  try {
    httpSignatureVerify({
      keys: { "shared-1": key },
      algorithms: ["hmac-sha256"],
      nonces: memoryNonceStore(),
    });
  } finally {
    unsubscribe(builtChannelName, hear);
  }
  const told = { keyid: "shared-1", alg: "hmac-sha256", thumbprint: null };
  const facts = expect.objectContaining({ keys: [expect.objectContaining(told)] });
  expect(built).toContainEqual(expect.objectContaining({ built: "httpSignatureVerify", facts }));
});
