import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { get } from "node:https";
import { tmpdir } from "node:os";
import path from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { startSandbox, type Sandbox } from "@countersign/devtools/sandbox";
import { createServiceClient, ServiceClientError } from "countersign/client";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import Database from "libsql";
import {
  capture,
  killAll,
  listeningUrl,
  signalGroup,
  type Captured,
} from "../../examples/platform/test/platform-process.ts";
import { testAuthority, type TestAuthority } from "../support/servers/certificates.ts";
import { servicePublicPem } from "../support/signers/test-keys.ts";
import { eventually } from "../support/runs/eventually.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const webhookPath = "/hooks/9c1f3ab27d5e4c0f";
const apiKey = "test-api-key";
// TEST CREDENTIALS.
const credentials = {
  authUsername: "service",
  authPassword: "test-password",
  signatureSecret: "test-secret",
};

interface InspectedEvent {
  readonly event_id: string;
  readonly type: string;
  readonly applied: number;
}

let folder: string;
let authority: TestAuthority;
let platform: Captured;
let url: string;
let sandbox: Sandbox;

beforeEach(async () => {
  folder = mkdtempSync(path.join(tmpdir(), "webhooks-e2e-"));
  authority = testAuthority();
  const { key, cert } = authority.issue();
  writeFileSync(path.join(folder, "server.key"), key);
  writeFileSync(path.join(folder, "server.crt"), cert);
  writeFileSync(path.join(folder, "keys.json"), JSON.stringify({ "service-1": servicePublicPem }));
  await startPlatform("0");
  sandbox = await startSandbox({
    apiKey,
    ca: authority.cert,
    speed: 20,
    delivery: { maxEventsPerWebhook: 1000 },
  });
});

afterEach(async () => {
  await sandbox.close();
  await killAll();
  rmSync(folder, { recursive: true, force: true });
});

async function startPlatform(port: string): Promise<void> {
  platform = capture("npm", ["run", "--silent", "platform"], {
    cwd: root,
    env: {
      PORT: port,
      STORE_URL: `sqlite:${path.join(folder, "platform.db")}`,
      PAYOUT_KEYS: path.join(folder, "keys.json"),
      WEBHOOK_PATH: webhookPath,
      WEBHOOK_USERNAME: credentials.authUsername,
      WEBHOOK_PASSWORD: credentials.authPassword,
      WEBHOOK_SECRETS: credentials.signatureSecret,
      TLS_CERT: path.join(folder, "server.crt"),
      TLS_KEY: path.join(folder, "server.key"),
      PLATFORM_INSPECT: "1",
    },
  });
  url = await listeningUrl(platform);
}

async function register(endpointUrl = url + webhookPath): Promise<void> {
  const client = createServiceClient({ baseUrl: sandbox.url, apiKey, dangerouslyAllowHttp: true });
  await client.createWebhookEndpoint({ url: endpointUrl, ...credentials });
}

async function service(method: string, route: string, body?: unknown): Promise<Record<string, unknown>> {
  const response = await fetch(sandbox.url + route, {
    method,
    headers: { "X-API-KEY": apiKey, "Content-Type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const answer = (await response.json()) as Record<string, unknown>;
  if (!response.ok)
    throw new Error(`${method} ${route} answered ${response.status}: ${JSON.stringify(answer)}`);
  return answer;
}

async function inspect<T>(route: string): Promise<T> {
  const body = await new Promise<string>((resolve, reject) => {
    get(url + route, { ca: authority.cert, agent: false }, (response) => resolve(text(response))).on(
      "error",
      reject,
    );
  });
  return JSON.parse(body) as T;
}

describe("the sandbox and npm run platform over TLS", () => {
  test("both sides end in the same state", async () => {
    await register();
    await service("POST", "/sandbox/buyers/buyer-1/status", { status: "ACTIVE" });
    await service("POST", "/sandbox/buyers/buyer-1/status", { status: "SUSPENDED" });
    await service("POST", "/sandbox/sellers/seller-1/status", { status: "REJECTED" });
    const dueDate = new Date(Date.now() + 3 * 86_400_000).toISOString().slice(0, 10);
    for (const id of ["request-1", "request-2"]) {
      await service("POST", "/sandbox/payment-requests", { payment_request_id: id, due_date: dueDate });
      await service("POST", `/sandbox/payment-requests/${id}/remind`);
    }
    await service("POST", "/sandbox/payment-requests/request-1/repay");
    await sandbox.deliveries.idle();
    expect(await inspect("/inspect/state")).toEqual({
      buyers: { "buyer-1": "SUSPENDED" },
      sellers: { "seller-1": "REJECTED" },
      payment_requests: {
        "request-1": { status: "CLOSED", reminders: 1 },
        "request-2": { status: "PENDING_REPAYMENT", reminders: 1 },
      },
    });
    expect(await service("GET", "/sandbox/buyers/buyer-1")).toMatchObject({ status: "SUSPENDED" });
    expect(await service("GET", "/sandbox/payment-requests/request-1")).toMatchObject({ status: "CLOSED" });
    const events = await inspect<InspectedEvent[]>("/inspect/events");
    expect(events.map(({ applied }) => applied)).toEqual([1, 1, 1, 1, 1, 1]);
    await expect(service("POST", "/sandbox/payment-requests/request-1/remind")).rejects.toThrow("409");
  });

  test("a receiver that is killed in the middle of a batch has applied every event once in the end", async () => {
    await register();
    const ids = Array.from({ length: 400 }, () => randomUUID());
    const events = ids.map((id, index) => ({
      event_id: id,
      type: "buyer.status_changed",
      data: { buyer_id: `buyer-${index % 50}`, old_status: "PENDING", new_status: "ACTIVE" },
    }));
    await service("POST", "/sandbox/events", { events });
    await untilSomeApplied();
    signalGroup(platform, "SIGKILL");
    await platform.ended;
    const appliedBefore = countApplied();
    expect(appliedBefore).toBeGreaterThan(0);
    expect(appliedBefore).toBeLessThan(ids.length);
    await startPlatform(new URL(url).port);
    await sandbox.deliveries.idle();
    const inspected = await inspect<InspectedEvent[]>("/inspect/events");
    expect(new Map(inspected.map(({ event_id, applied }) => [event_id, applied]))).toEqual(
      new Map(ids.map((id) => [id, 1])),
    );
    const [delivery] = sandbox.deliveries.list();
    expect(delivery?.attempts.length).toBeGreaterThan(1);
  });

  test("a certificate that nobody vouches for is not delivered to, and plain http is refused by the service", async () => {
    await sandbox.close();
    sandbox = await startSandbox({ apiKey, speed: 20 });
    await register();
    await service("POST", "/sandbox/buyers/buyer-1/status", { status: "ACTIVE" });
    const [delivery] = await untilAttempted();
    expect(delivery?.attempts[0]).toMatchObject({ error: "certificate-rejected" });
    expect(await inspect("/inspect/events")).toEqual([]);
    const refusal = register(url.replace("https:", "http:") + webhookPath);
    await expect(refusal).rejects.toThrow(ServiceClientError);
  });
});

async function untilAttempted(): Promise<ReturnType<Sandbox["deliveries"]["list"]>> {
  for (;;) {
    const deliveries = sandbox.deliveries.list();
    if ((deliveries[0]?.attempts.length ?? 0) > 0) return deliveries;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** The platform's event loop is busy with the batch, so its database is asked. */
async function untilSomeApplied(): Promise<void> {
  await eventually(() => countApplied() !== 0);
}

function countApplied(): number {
  const database = new Database(path.join(folder, "platform.db"), { readonly: true });
  try {
    const [row] = database.prepare("SELECT count(*) AS count FROM webhook_events").all() as {
      count: number;
    }[];
    return row?.count ?? 0;
  } finally {
    database.close();
  }
}
