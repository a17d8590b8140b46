// npm run dev: the platform, with the lending service's page and the inspector's beside it. All start again when a file changes.
import { randomBytes } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { inspector } from "@countersign/devtools/inspector";
import { sampleBusiness, startSandbox } from "@countersign/devtools/sandbox";
import { createServiceClient } from "countersign/client";
import { payoutChecks, webhookChecks } from "../src/checks.ts";
import { addBusiness, stores } from "../src/database.ts";
import { url } from "../src/server.ts";
import { settings } from "../src/settings.ts";
import { forwardedFor } from "../test/lending-service.ts";

await addBusiness(sampleBusiness.businessId, sampleBusiness.iban);

const { signature, addresses } = payoutChecks;
const { hmac, basicAuth } = webhookChecks;
const inspected = await inspector({
  signature,
  hmac,
  basicAuth,
  addresses: { ...addresses, trustProxy: settings.trustProxy },
  stores: { payouts: stores.idempotency },
});

// Without the file of npm run keys, the page signs with a key of its own, which the platform does not know.
const { keyid } = settings;
const keyFile = `keys/${keyid}.private.pem`;
const key = existsSync(keyFile) ? { keyid, keyFile, privateKey: readFileSync(keyFile, "utf8") } : {};
const apiKey = randomBytes(24).toString("base64url");
// On this machine, whatever address the platform listens on.
const platform = `http://127.0.0.1:${new URL(url).port}`;
const page = { payoutUrl: `${platform}/api/v1/transaction`, ...key };
// Also plays the proxy that ends TLS: without one the platform takes no webhook, and no payout from the service's address.
const sandbox = await startSandbox({ apiKey, allowHttp: "loopback", forwardedFor, page });
const service = createServiceClient({ baseUrl: sandbox.url, apiKey, dangerouslyAllowHttp: true });
await service.createWebhookEndpoint({
  url: platform + settings.webhookPath,
  authUsername: settings.webhookUsername,
  authPassword: settings.webhookPassword,
  signatureSecret: settings.webhookSecret,
});

console.log(`
Sandbox, which sends payouts and webhooks:
  ${sandbox.pageUrl}
Inspector, which shows each request and what is wrong:
  ${inspected.pageUrl}
`);

function close(): void {
  void sandbox.close();
  void inspected.close();
}
for (const signal of ["SIGTERM", "SIGINT"]) process.once(signal, close);
