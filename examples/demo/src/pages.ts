import { randomBytes } from "node:crypto";
import { startSandbox } from "@countersign/devtools/sandbox";
import { createServiceClient } from "countersign/client";
import type { DemoPlatform } from "./platform.ts";
import { demoKeyid, type DemoSetup } from "./setup.ts";

/** The two pages beside the platform that serves. */
export interface DemoPages {
  /** Of a sandbox that knows the platform's payout route and delivers webhooks to it. */
  readonly sandboxUrl: string;
  /** Of the inspector in the platform's own process. */
  readonly inspectorUrl: string;
  close(): Promise<void>;
}

/** What the pages are about. */
interface Shown {
  readonly setup: DemoSetup;
  readonly platform: DemoPlatform;
  readonly payoutUrl: string;
  /** The private key's file, as commands name it. */
  readonly keyFile: string;
}

/** Starts a sandbox with a page on a free port, and registers the platform's webhook endpoint at it. */
export async function startDemoPages({ setup, platform, payoutUrl, keyFile }: Shown): Promise<DemoPages> {
  const { inspectorUrl } = platform;
  if (inspectorUrl === undefined) throw new Error("the platform was started without an inspector");
  const apiKey = randomBytes(24).toString("base64url");
  const { privateKeyPem: privateKey } = setup.key;
  const page = { payoutUrl, privateKey, keyid: demoKeyid, keyFile };
  const sandbox = await startSandbox({ apiKey, allowHttp: "loopback", page });
  const { pageUrl, url: baseUrl } = sandbox;
  try {
    if (pageUrl === undefined) throw new Error("the sandbox was started without a page");
    const service = createServiceClient({ baseUrl, apiKey, dangerouslyAllowHttp: true });
    const { path: route, ...credentials } = setup.webhook;
    await service.createWebhookEndpoint({ ...credentials, url: platform.url + route });
  } catch (error) {
    await sandbox.close();
    throw error;
  }
  return { sandboxUrl: pageUrl, inspectorUrl, close: () => sandbox.close() };
}
