import { writeFileSync } from "node:fs";
import { connect } from "node:net";
import path from "node:path";
import { type Environment, readSettings } from "@countersign/example-settings";
import { pino } from "pino";
import { afterTest, testFolder } from "@countersign/test-support/runs/after-test.ts";
import { startPlatform, type Platform, type PlatformPorts } from "../src/platform.ts";
import { business, makeTestKey, payoutBody, signPayout, type TestKey } from "./signer.ts";

export const payoutPath = "/api/v1/transaction";

export interface RunningPlatform extends Platform {
  readonly key: TestKey;
  send(body: string, changes?: SendChanges): Promise<Response>;
  inspect(): Promise<readonly { idempotency_key: string; status: string; created_at: string }[]>;
}

interface SendChanges {
  readonly path?: string;
  readonly signedPath?: string;
  readonly key?: TestKey;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Starts a platform on any port, with a fresh key and one business, until the test has ended. */
export async function runPlatform(
  env: Environment = {},
  ports: Partial<PlatformPorts> = {},
): Promise<RunningPlatform> {
  const folder = testFolder();
  const key = makeTestKey("service-1");
  const files = { keys: path.join(folder, "keys.json"), businesses: path.join(folder, "businesses.json") };
  writeFileSync(files.keys, JSON.stringify({ [key.keyid]: key.publicKeyPem }));
  writeFileSync(files.businesses, JSON.stringify([business]));
  const settings = readSettings({
    PORT: "0",
    STORE_URL: "memory:",
    PAYOUT_KEYS: files.keys,
    BUSINESSES: files.businesses,
    PLATFORM_INSPECT: "1",
    ...env,
  });
  const platform = await startPlatform(settings, { logger: pino({ level: "silent" }), ...ports });
  let isClosed = false;
  const close = (): Promise<void> => {
    isClosed = true;
    return platform.close();
  };
  afterTest(() => isClosed || close());
  return {
    ...platform,
    close,
    key,
    send(body, { path: sentPath = payoutPath, signedPath = sentPath, key: signer = key, headers } = {}) {
      const signed = signPayout(signer, signedPath, body);
      return fetch(platform.url + sentPath, { method: "POST", headers: { ...signed, ...headers }, body });
    },
    async inspect() {
      const response = await fetch(`${platform.url}/inspect/payouts`);
      return (await response.json()) as Awaited<ReturnType<RunningPlatform["inspect"]>>;
    },
  };
}

/** A payout of which the platform has the head and the first bytes of the body. */
export interface HalfSent {
  readonly answer: Promise<string>;
  sendRest(): void;
}

export async function sendHalf(url: string, key: TestKey, body: string): Promise<HalfSent> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname).setEncoding("utf8");
  const fields = { Host: `${hostname}:${port}`, "Content-Length": String(Buffer.byteLength(body)) };
  const headers = { ...fields, ...signPayout(key, payoutPath, body) };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  socket.write(`POST ${payoutPath} HTTP/1.1\r\n${lines.join("\r\n")}\r\n\r\n${body.slice(0, 20)}`);
  let text = "";
  socket.on("data", (chunk: string) => {
    text += chunk;
  });
  const answer = new Promise<string>((resolve) => {
    socket.on("close", () => resolve(text));
    socket.on("error", () => {});
  });
  // The platform has the head of the request when it has answered a later one.
  await fetch(`${url}/healthz`).then((response) => response.text());
  return { answer, sendRest: () => void socket.write(body.slice(20)) };
}

export { payoutBody };
