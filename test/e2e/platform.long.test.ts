import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import {
  capture,
  killAll,
  listeningUrl,
  signalGroup,
  type Captured,
} from "../../examples/platform/test/platform-process.ts";
import {
  business,
  makeTestKey,
  payoutBody,
  signPayout,
  type SignedHeaders,
  type TestKey,
} from "../../examples/platform/test/signer.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const payoutPath = "/api/v1/transaction";

let folder: string;
let key: TestKey;
let platform: Captured;
let url: string;

beforeEach(async () => {
  folder = mkdtempSync(path.join(tmpdir(), "platform-e2e-"));
  key = makeTestKey("service-1");
  writeFileSync(path.join(folder, "keys.json"), JSON.stringify({ [key.keyid]: key.publicKeyPem }));
  writeFileSync(path.join(folder, "businesses.json"), JSON.stringify([business]));
  await start();
});

afterEach(async () => {
  await killAll();
  rmSync(folder, { recursive: true, force: true });
});

async function start(): Promise<void> {
  platform = capture("npm", ["run", "--silent", "platform"], {
    cwd: root,
    env: {
      PORT: "0",
      STORE_URL: `sqlite:${path.join(folder, "data", "platform.db")}`,
      PAYOUT_KEYS: path.join(folder, "keys.json"),
      BUSINESSES: path.join(folder, "businesses.json"),
      PLATFORM_INSPECT: "1",
    },
  });
  url = await listeningUrl(platform);
}

async function kill(): Promise<void> {
  signalGroup(platform, "SIGKILL");
  await platform.ended;
}

function send(body: string, headers: SignedHeaders = signPayout(key, payoutPath, body)): Promise<number> {
  return fetch(url + payoutPath, { method: "POST", headers: { ...headers }, body }).then(async (response) => {
    await response.text();
    return response.status;
  });
}

async function paidKeys(): Promise<readonly string[]> {
  const response = await fetch(`${url}/inspect/payouts`);
  const rows = (await response.json()) as readonly { idempotency_key: string }[];
  return rows.map((row) => row.idempotency_key);
}

describe("npm run platform, killed between requests", () => {
  test("answers every paid key with 409 and pays none twice", async () => {
    const bodies = [1, 2, 3].map((number) => payoutBody(`op-${number}.from.to`));
    for (const [index, body] of bodies.entries()) {
      expect(await send(body)).toBe(200);
      await kill();
      await start();
      for (const paid of bodies.slice(0, index + 1)) expect(await send(paid)).toBe(409);
      expect(await paidKeys()).toEqual(
        bodies.slice(0, index + 1).map((_body, number) => `op-${number + 1}.from.to`),
      );
    }
  }, 60_000);

  test("refuses a nonce that an earlier process has seen", async () => {
    const body = payoutBody("op.from.to");
    const headers = signPayout(key, payoutPath, body);
    expect(await send(body, headers)).toBe(200);
    await kill();
    await start();
    expect(await send(body, headers)).toBe(401);
    expect(await paidKeys()).toEqual(["op.from.to"]);
  }, 60_000);

  test("pays once what was cut off in the middle, when it is sent again", async () => {
    const bodies = Array.from({ length: 20 }, (_, number) => payoutBody(`cut-${number}.from.to`));
    const first = Promise.allSettled(bodies.map((body) => send(body)));
    await new Promise((resolve) => setTimeout(resolve, 15));
    await kill();
    const answers = (await first).map((answer) => (answer.status === "fulfilled" ? answer.value : "none"));
    await start();
    const again = await Promise.all(bodies.map((body) => sendUntilDecided(body)));
    // What was acknowledged is paid; what got no answer was either paid or not begun.
    for (const [index, answer] of answers.entries()) {
      expect(answer === 200 ? [409] : [200, 409]).toContain(again[index]);
    }
    const paid = await paidKeys();
    expect(paid).toHaveLength(bodies.length);
    expect(new Set(paid)).toEqual(new Set(bodies.map((_body, number) => `cut-${number}.from.to`)));
  }, 60_000);
});

describe("npm run platform, under 200 identical payouts at once", () => {
  test("answers one with 200, the others with 409 after its commit or 503, and keeps one row", async () => {
    const body = payoutBody("burst.from.to");
    const statuses = await Promise.all(Array.from({ length: 200 }, () => send(body)));
    const count = (status: number): number => statuses.filter((answered) => answered === status).length;
    expect(count(200)).toBe(1);
    expect(count(409) + count(503)).toBe(199);
    expect(await paidKeys()).toEqual(["burst.from.to"]);
    expect(await send(body)).toBe(409);
  }, 60_000);
});

describe("npm run platform, when npm alone is told to end", () => {
  test("shuts down as on a signal of its own", async () => {
    platform.child.kill("SIGTERM");
    await platform.ended;
    expect(platform.stderr()).toContain('"msg":"shutting down"');
    await expect(fetch(`${url}/healthz`)).rejects.toThrow();
  }, 30_000);
});

/** As the service does: 503 means to come back with a fresh nonce. A key whose owner died is free when its lease ends. */
async function sendUntilDecided(body: string): Promise<number> {
  const end = Date.now() + 45_000;
  for (;;) {
    const status = await send(body);
    if (status !== 503 || Date.now() > end) return status;
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
}
