import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import {
  buildPayoutRequest,
  buildWebhookRequest,
  createEnvelope,
  createPayoutInstruction,
  generateKeyPair,
  sendPayout,
  sendRequest,
} from "@countersign/devtools/sandbox";
import Database from "libsql";

export interface RunningExample {
  readonly url: string;
  /** The keys of the payouts and the ids of the events in its database. */
  records(): { readonly payouts: readonly unknown[]; readonly events: readonly unknown[] };
  /** SIGTERM, once. Gives the exit code. */
  stop(): Promise<number | null>;
}

/** The field by which a test tells its own proxy which address calls. */
export const callerField = "X-Test-Caller";

/** Header fields that the proxy in front of an example sets: a listed address, by https. */
export const byProxy = { "X-Forwarded-For": "192.0.2.10", "X-Forwarded-Proto": "https" };

const webhookPath = "/webhooks/3f9c2a7be1d04c55";
// TEST CREDENTIALS.
const credentials = { username: "service", password: "test-password", secret: "test-secret" };
const key = generateKeyPair();

/** Starts a program and waits until it listens: on any port with a database of its own, where `place` names none. */
export async function startExample(
  program: URL,
  args: readonly string[] = [],
  place: { readonly port?: number; readonly folder?: string } = {},
): Promise<RunningExample> {
  const folder = place.folder ?? mkdtempSync(path.join(tmpdir(), "countersign-example-"));
  const file = path.join(folder, "platform.db");
  const env = {
    ...process.env,
    NODE_ENV: "production",
    PORT: String(place.port ?? 0),
    DATABASE_FILE: file,
    KEYID: key.keyid,
    PUBLIC_KEY: key.publicKeyPem,
    ALLOW_IPS: byProxy["X-Forwarded-For"],
    TRUST_PROXY: "127.0.0.1",
    WEBHOOK_PATH: webhookPath,
    WEBHOOK_USERNAME: credentials.username,
    WEBHOOK_PASSWORD: credentials.password,
    WEBHOOK_SECRET: credentials.secret,
    SESSION_SECRET: "test-session-secret",
  };
  const child = spawn(process.execPath, [program.pathname, ...args], {
    env,
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = once(child, "exit") as Promise<[number | null]>;
  return {
    url: await listeningUrl(child),
    records() {
      const database = new Database(file);
      try {
        const payouts = database.prepare("SELECT idempotency_key FROM payouts").pluck().all();
        return { payouts, events: database.prepare("SELECT event_id FROM events").pluck().all() };
      } finally {
        database.close();
      }
    },
    async stop() {
      child.kill("SIGTERM");
      const [code] = await ended;
      if (place.folder === undefined) rmSync(folder, { recursive: true, force: true });
      return code;
    },
  };
}

async function listeningUrl(child: ChildProcess): Promise<string> {
  for await (const line of createInterface({ input: child.stdout! })) {
    const url = /^listening on (?<url>http:\S+)$/.exec(line)?.groups?.["url"];
    if (url !== undefined) return url;
  }
  throw new Error("the example has ended without listening");
}

/**
 * Sends what a lending service and those who pretend to be it send, with `headers` as the proxy's, and gives the statuses. Each
 * payout is another one but for the repeated one.
 */
export async function exchange(url: string, headers: Readonly<Record<string, string>>) {
  const paid = createPayoutInstruction({ idempotencyKey: "payout-1.funding-1.business-1" });
  const pay = payerOf(url, headers);
  const notify = async (changes: Partial<typeof credentials> = {}): Promise<number> => {
    const events = [{ event_id: "ev-1", type: "buyer.approved", data: { buyer_id: "b-1" } }];
    const body = createEnvelope({ events, now: 1_800_000_000_123_456_789n });
    const to = { url: url + webhookPath, allowHttp: true };
    const request = buildWebhookRequest({ ...to, ...credentials, ...changes, body });
    return (await sendRequest({ ...request, headers: { ...request.headers, ...headers } })).status;
  };
  return {
    payout: await pay(paid),
    repeatedPayout: await pay(paid),
    forgedPayout: await pay(createPayoutInstruction(), { privateKey: generateKeyPair().privateKeyPem }),
    payoutOfAnotherAddress: await pay(createPayoutInstruction(), { headers: otherAddress(headers) }),
    webhook: await notify(),
    repeatedWebhook: await notify(),
    forgedWebhook: await notify({ secret: "another secret" }),
    webhookProbeLooksUnknown: await looksUnknown(url, headers),
  };
}

/** What {@link exchange} gives where each payout is paid once and each event handled once. */
export const eachOnce = {
  payout: 200,
  repeatedPayout: 409,
  forgedPayout: 401,
  payoutOfAnotherAddress: 401,
  webhook: 200,
  repeatedWebhook: 200,
  forgedWebhook: 404,
  webhookProbeLooksUnknown: true,
};

export const recordedOnce = { payouts: ["payout-1.funding-1.business-1"], events: ["ev-1"] };

/** The status of a genuine payout with as many header lines more as Node 20 keeps of a request. */
export async function payWithTooManyLines(
  url: string,
  headers: Readonly<Record<string, string>>,
): Promise<number> {
  const more = Object.fromEntries(Array.from({ length: 1_000 }, (_, index) => [`X-${index}`, "1"]));
  return payerOf(url, headers)(createPayoutInstruction(), { headers: { ...more, ...headers } });
}

export function payerOf(url: string, headers: Readonly<Record<string, string>>) {
  return async (body: unknown, changes: { readonly [name: string]: unknown } = {}): Promise<number> => {
    const { keyid, privateKeyPem: privateKey } = key;
    const target = `${url}/api/v1/transaction`;
    const request = buildPayoutRequest({ url: target, body, privateKey, keyid, headers, ...changes });
    return (await sendPayout(request)).status;
  };
}

function otherAddress(headers: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return { ...headers, "X-Forwarded-For": "192.0.2.11", [callerField]: "192.0.2.11" };
}

async function looksUnknown(url: string, headers: Readonly<Record<string, string>>): Promise<boolean> {
  const unknown = "/".padEnd(webhookPath.length, "0");
  const [got, elsewhere] = await Promise.all(
    [webhookPath, unknown].map(async (place) => {
      const response = await fetch(url + place, { method: "POST", headers });
      const fields = [...response.headers].filter(([name]) => !varying.test(name));
      return JSON.stringify([response.status, fields, (await response.text()).replaceAll(place, "/")]);
    }),
  );
  return got === elsewhere;
}

const varying = /^(?:date|etag|ratelimit.*)$/;
