// npm run dev: the platform, with the lending service's page and the inspector's beside it. All start again when a file changes.
import { randomBytes } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { inspector } from "@countersign/devtools/inspector";
import { sampleBusiness, startSandbox } from "@countersign/devtools/sandbox";
import { createServiceClient } from "countersign/client";
import { payoutChecks, webhookChecks } from "../src/checks.ts";
import { addBusiness, stores } from "../src/database.ts";
import { url } from "../src/server.ts";
import { settings } from "../src/settings.ts";
import { headers } from "../test/lending-service.ts";

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

// In place of the proxy that ends TLS: only through one does the platform take what comes from the service's address.
const proxy = createServer((req, res) => {
  const passed = [...req.rawHeaders, ...Object.entries(headers).flat()];
  const sent = request(url + req.url, { method: req.method, headers: passed }, (answer) => {
    res.writeHead(answer.statusCode ?? 502, answer.rawHeaders);
    answer.pipe(res);
  });
  sent.on("error", () => res.destroy());
  req.pipe(sent);
});
await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
const proxyUrl = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;

// Without the file of npm run keys, the page signs with a key of its own, which the platform does not know.
const { keyid } = settings;
const keyFile = `keys/${keyid}.private.pem`;
const key = existsSync(keyFile) ? { keyid, keyFile, privateKey: readFileSync(keyFile, "utf8") } : {};
const apiKey = randomBytes(24).toString("base64url");
const page = { payoutUrl: `${proxyUrl}/api/v1/transaction`, ...key };
const sandbox = await startSandbox({ apiKey, allowHttp: "loopback", page });
const service = createServiceClient({ baseUrl: sandbox.url, apiKey, dangerouslyAllowHttp: true });
await service.createWebhookEndpoint({
  url: proxyUrl + settings.webhookPath,
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
  proxy.close();
  void sandbox.close();
  void inspected.close();
}
for (const signal of ["SIGTERM", "SIGINT"]) process.once(signal, close);
