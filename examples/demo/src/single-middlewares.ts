import {
  createEnvelope,
  buildWebhookRequest,
  sampleBusiness,
  sendRequest,
} from "@countersign/devtools/sandbox";
import type { Environment } from "@countersign/example-settings";
import Database from "libsql";
import { listedIp, runCase, type DemoCase, type Report } from "./cases.ts";
import { startDemoPlatform, type DemoPlatform } from "./platform.ts";
import type { DemoSetup } from "./setup.ts";
import { resultOf } from "./webhook-cases.ts";

/** Starts the example that mounts the single middlewares, on any port and with a database of its own that ends with it. */
export function startSingleMiddlewares(
  { key, logFile, webhook }: DemoSetup,
  databaseFile: string,
): Promise<DemoPlatform> {
  const env: Environment = {
    NODE_ENV: undefined,
    PORT: "0",
    DATABASE_FILE: databaseFile,
    KEYID: key.keyid,
    PUBLIC_KEY: key.publicKeyPem,
    ALLOW_IPS: listedIp,
    TRUST_PROXY: "127.0.0.1",
    WEBHOOK_PATH: webhook.path,
    WEBHOOK_USERNAME: webhook.authUsername,
    WEBHOOK_PASSWORD: webhook.authPassword,
    WEBHOOK_SECRET: webhook.signatureSecret,
  };
  return startDemoPlatform(env, logFile, "@countersign/example-middlewares/server");
}

/** Makes the sample business known in the database of a running example. */
function addSampleBusiness(databaseFile: string): void {
  const database = new Database(databaseFile);
  try {
    const insert = database.prepare("INSERT INTO businesses VALUES (?, ?)");
    insert.run(sampleBusiness.businessId, sampleBusiness.iban);
  } finally {
    database.close();
  }
}

const byProxy = { "X-Forwarded-For": listedIp, "X-Forwarded-Proto": "https" };

/** What each of the single middlewares refuses, and what they let pass together. */
export async function runSingleMiddlewares(
  { key, webhook }: DemoSetup,
  { url, databaseFile }: { readonly url: string; readonly databaseFile: string },
  report: Report,
): Promise<void> {
  addSampleBusiness(databaseFile);
  const paid = { idempotencyKey: "payout-1.funding-1.business-1", headers: byProxy };
  const payouts: readonly (DemoCase & { readonly headers: Readonly<Record<string, string>> })[] = [
    { name: "all of them: a good payout", expected: "200", ...paid },
    { name: "idempotencyGuard: the same key", expected: "409", ...paid },
    {
      name: "ipAllowlist: another address",
      expected: "401",
      headers: { ...byProxy, "X-Forwarded-For": "198.51.100.7" },
    },
    { name: "rawBody: over 64 kB", expected: "413", headers: byProxy, reference: "x".repeat(70_000) },
    { name: "contentDigest: another body", expected: "401", headers: byProxy, variant: "tamper-body" },
    { name: "httpSignatureVerify: too late", expected: "401", headers: byProxy, variant: "expired" },
    { name: "the same: its nonce again", expected: "200 401", headers: byProxy, variant: "replay" },
    {
      name: "jsonBody: nested too deep",
      expected: "400",
      headers: byProxy,
      amount: { value: "10.00", deep: [[[[[[[[]]]]]]]] },
    },
  ];
  for (const one of payouts) {
    // oxlint-disable-next-line no-await-in-loop -- later cases depend on earlier ones
    report(await runCase({ url: `${url}/api/v1/transaction`, key }, one));
  }
  const send = async (changes: { readonly password?: string; readonly secret?: string } = {}) => {
    const { path, authUsername: username, authPassword: password, signatureSecret: secret } = webhook;
    const events = [{ event_id: "event-1", type: "buyer.approved", data: { buyer_id: "buyer-1" } }];
    const body = createEnvelope({ events, now: BigInt(Date.now()) * 1_000_000n });
    const to = { url: url + path, allowHttp: true, username, password, secret, body, ...changes };
    const request = buildWebhookRequest(to);
    const { status } = await sendRequest({ ...request, headers: { ...request.headers, ...byProxy } });
    return String(status);
  };
  report(resultOf("both of them: a good webhook", "200", await send()));
  report(resultOf("webhookBasicAuth: another password", "404", await send({ password: "another password" })));
  report(resultOf("webhookHmac: another secret", "404", await send({ secret: "another secret" })));
}
