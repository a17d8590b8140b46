import { symlinkSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { generateKeyPair } from "@countersign/devtools/sandbox";
import { moduleIn, temporaryFolder } from "./cli-bench.ts";

/** Where apps stand that the doctor looks at; its node_modules are those of the project. */
export const folder = temporaryFolder();
symlinkSync(
  fileURLToPath(new URL("../../../../node_modules", import.meta.url)),
  join(folder, "node_modules"),
);

export function moduleOf(text: string, name = "app.mjs"): string {
  return moduleIn(folder, text, name);
}

// TEST KEYS, secrets and passwords. The names say so, as the report must not repeat them.
export const { publicKeyPem } = generateKeyPair({ keyid: "unused" });
const other = generateKeyPair({ keyid: "unused" }).publicKeyPem;
export const secrets = ["test-password-of-the-webhook", "test-secret-of-the-webhook-endpoint"];

/** An app, and what its guards are made with. */
export const imports: string = `
import express from "express";
import { captureRawBody } from "@countersign/express";
import { memoryIdempotencyStore } from "@countersign/idempotency";
import { httpSignatureVerify, memoryNonceStore } from "@countersign/http-signature-verify";
import { importVerificationKey } from "@countersign/http-message-signatures";
import { payoutEndpoint } from "countersign/payout";
import { createWebhookHandler, webhookEndpoint } from "countersign/webhooks";
const pem = ${JSON.stringify(publicKeyPem)};
const other = ${JSON.stringify(other)};
const memory = { allowInProduction: true };
const store = memoryIdempotencyStore({ ...memory, retentionMs: 30 * 86_400_000 });
const payout = ({ addresses, signature, ...options } = {}) => payoutEndpoint({
  addresses: { allow: ["192.0.2.1"], ...addresses },
  signature: { keys: { "service-1": pem }, nonces: memoryNonceStore(memory), ...signature },
  idempotency: { store },
  findBusiness: () => true,
  ...options,
});
const handler = createWebhookHandler({ store, fallback: () => {} });
const webhook = (options) => webhookEndpoint({
  basicAuth: { username: "service", password: ${JSON.stringify(secrets[0])} },
  hmac: { secret: ${JSON.stringify(secrets[1])} },
  handler,
  ...options,
});
const app = express();
app.set("trust proxy", ["192.0.2.7"]);
`;
export const mounted = `app.post("/pay", payout(), (req, res) => res.json({}));\nexport { app };\n`;

export interface Report {
  readonly errors: number;
  readonly warnings: number;
  readonly subjects: readonly string[];
  readonly findings: readonly Readonly<
    Record<"id" | "severity" | "subject" | "message" | "cause" | "remedy", string>
  >[];
}
