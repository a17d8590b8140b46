import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { connect, createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import {
  type PayoutRequest,
  buildPayoutRequest,
  buildWebhookRequest,
  createEnvelope,
  createPayoutInstruction,
  generateKeyPair,
  sampleBusiness,
  sendPayout,
  sendRequest,
} from "@countersign/devtools/sandbox";
import { eventually } from "@countersign/test-support/runs/eventually.ts";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import Database from "libsql";

const program = fileURLToPath(new URL("../dist/server.js", import.meta.url));
const { keyid, publicKeyPem, privateKeyPem: privateKey } = generateKeyPair();
const credentials = { username: "service", password: "test-password", secret: "test-secret" };

let folder: string;
let env: Record<string, string>;
let server: ChildProcess;

beforeEach(async () => {
  folder = mkdtempSync(path.join(tmpdir(), "countersign-minimal-"));
  env = {
    DATABASE_FILE: path.join(folder, "platform.db"),
    PORT: String(await freePort()),
    KEYID: keyid,
    PUBLIC_KEY: publicKeyPem,
    ALLOW_IPS: "192.0.2.10,198.51.100.0/28",
    TRUST_PROXY: "loopback",
    WEBHOOK_PATH: "/webhooks/3f9a",
    WEBHOOK_USERNAME: credentials.username,
    WEBHOOK_PASSWORD: credentials.password,
    WEBHOOK_SECRET: credentials.secret,
  };
});
afterEach(async () => {
  if (server.exitCode === null && server.kill("SIGKILL")) await once(server, "exit");
  rmSync(folder, { recursive: true, force: true });
});

async function freePort(): Promise<number> {
  const listening = createServer().listen(0, "127.0.0.1");
  await once(listening, "listening");
  const { port } = listening.address() as AddressInfo;
  listening.close();
  await once(listening, "close");
  return port;
}

async function start(): Promise<void> {
  server = spawn(process.execPath, [program], {
    env: { ...process.env, NODE_ENV: "production", ...env },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [said] = (await once(server.stdout ?? server, "data")) as [Buffer];
  expect(String(said)).toBe(`listening on port ${env["PORT"]}\n`);
}

async function takesConnections(): Promise<boolean> {
  const socket = connect(Number(env["PORT"]), "127.0.0.1");
  try {
    await once(socket, "connect");
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

function url(target: string): string {
  return `http://127.0.0.1:${env["PORT"]}${target}`;
}

/** As the proxy hands it on, which names the client. */
function payout(body: unknown, key = privateKey, from = "192.0.2.10"): PayoutRequest {
  const headers = { "X-Forwarded-For": from };
  return buildPayoutRequest({ url: url("/api/v1/transaction"), body, privateKey: key, keyid, headers });
}

async function pay(...parameters: Parameters<typeof payout>): Promise<number> {
  return (await sendPayout(payout(...parameters))).status;
}

/** As the proxy hands it on, which says https. */
async function notify(password = credentials.password): Promise<number> {
  const events = [{ event_id: "ev-1", type: "buyer.approved", data: { buyer_id: "b-1" } }];
  const body = createEnvelope({ events, now: 1_800_000_000_123_456_789n });
  const to = { url: url(env["WEBHOOK_PATH"] ?? ""), allowHttp: true };
  const request = buildWebhookRequest({ ...to, ...credentials, password, body });
  const headers = { ...request.headers, "X-Forwarded-Proto": "https" };
  return (await sendRequest({ ...request, headers })).status;
}

function query(sql: string): unknown[] {
  const database = new Database(env["DATABASE_FILE"] ?? "");
  try {
    return database.prepare(sql).all();
  } finally {
    database.close();
  }
}

function knowSampleBusiness(): void {
  const database = new Database(env["DATABASE_FILE"] ?? "");
  const insert = database.prepare("INSERT INTO businesses VALUES (?, ?)");
  insert.run(sampleBusiness.businessId, sampleBusiness.iban);
  database.close();
}

describe("the minimal server", () => {
  test("pays a signed payout once: 200, then 409", async () => {
    await start();
    knowSampleBusiness();
    const body = createPayoutInstruction({ idempotencyKey: "payout-1.funding-1.business-1" });
    expect(await pay(body)).toBe(200);
    expect(await pay(body)).toBe(409);
    const instruction = JSON.stringify(body);
    expect(query("SELECT * FROM payouts")).toEqual([{ idempotency_key: body.idempotency_key, instruction }]);
  });

  test("pays nobody whom it does not know, and nothing of another key or address", async () => {
    await start();
    expect(await pay(createPayoutInstruction())).toBe(400);
    expect(await pay(createPayoutInstruction(), generateKeyPair().privateKeyPem)).toBe(401);
    expect(await pay(createPayoutInstruction(), privateKey, "192.0.2.11")).toBe(401);
    expect(query("SELECT * FROM payouts")).toEqual([]);
  });

  test.each([{}, { value: "-5" }, { value: "0.00" }])("pays nothing for the amount %j", async (amount) => {
    await start();
    knowSampleBusiness();
    expect(await pay(createPayoutInstruction({ amount }))).toBe(400);
    expect(query("SELECT * FROM payouts")).toEqual([]);
  });

  test("handles an event once, however often it comes, and shows strangers nothing", async () => {
    await start();
    expect(await notify("wrong")).toBe(404);
    expect(await notify()).toBe(200);
    expect(await notify()).toBe(200);
    expect(query("SELECT event_id, type FROM events")).toEqual([
      { event_id: "ev-1", type: "buyer.approved" },
    ]);
  });

  test("answers what it has received when it is told to end, takes no more, and ends with 0", async () => {
    await start();
    knowSampleBusiness();
    const request = payout(createPayoutInstruction());
    const socket = connect(Number(env["PORT"]), "127.0.0.1");
    const fields = Object.entries(request.headers).map(([name, value]) => `${name}: ${value}\r\n`);
    const length = request.bodyBytes.length;
    socket.write(`POST ${request.target} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: ${length}\r\n`);
    socket.write(`Expect: 100-continue\r\n${fields.join("")}\r\n`);
    // The server asks for the body once it has received the head.
    expect(String(await once(socket, "data"))).toBe("HTTP/1.1 100 Continue\r\n\r\n");
    socket.write(request.bodyBytes.subarray(0, 10));
    const exit = once(server, "exit");
    server.kill("SIGTERM");
    await eventually(async () => !(await takesConnections()));
    await expect(pay(createPayoutInstruction())).rejects.toThrow(/nothing listens/);
    socket.write(request.bodyBytes.subarray(10));
    const [answer] = (await once(socket, "data")) as [Buffer];
    expect(String(answer)).toMatch(/^HTTP\/1.1 200 [^]*\r\nConnection: close\r\n/);
    expect(await exit).toEqual([0, null]);
    expect(query("SELECT idempotency_key FROM payouts")).toHaveLength(1);
  });

  test.each(["PUBLIC_KEY", "ALLOW_IPS", "WEBHOOK_SECRET", "TRUST_PROXY"])(
    "does not start without %s",
    async (name) => {
      const { [name]: _, ...rest } = env;
      server = spawn(process.execPath, [program], { env: rest, stdio: ["ignore", "ignore", "pipe"] });
      const chunks: Buffer[] = [];
      server.stderr?.on("data", (chunk: Buffer) => chunks.push(chunk));
      expect(await once(server, "close")).toEqual([1, null]);
      expect(Buffer.concat(chunks).toString()).toContain(`${name} is not set`);
    },
  );
});
