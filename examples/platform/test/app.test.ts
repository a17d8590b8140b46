import { readSettings } from "@countersign/example-settings";
import { importVerificationKey } from "@countersign/http-message-signatures";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { pino } from "pino";
import request from "supertest";
import { createApp, type AppParts } from "../src/app.ts";
import type { SqliteStorage } from "../src/engines/sqlite.ts";
import { makeTestKey, payoutBody, signPayout } from "./signer.ts";
import { memoryStorage } from "./test-storage.ts";

const key = makeTestKey("service-1");
const settings = readSettings({
  STORE_URL: "memory:",
  PAYOUT_KEYS: JSON.stringify({ [key.keyid]: key.publicKeyPem }),
});

let opened: SqliteStorage;
let lines: string[];

beforeEach(() => {
  opened = memoryStorage();
  lines = [];
});

afterEach(() => opened.close());

function app(changes: Partial<AppParts> = {}): ReturnType<typeof createApp> {
  const { stores, ledger, parties } = opened;
  return createApp({
    settings,
    keys: new Map([[key.keyid, importVerificationKey(key.keyid, key.publicKeyPem)]]),
    inspectKeys: () => ({ accepted: [], used: [] }),
    stores,
    ledger,
    parties,
    logger: pino({}, { write: (line: string) => lines.push(line) }),
    endpoints: [],
    isClosing: () => false,
    onAccepted: () => {},
    ...changes,
  });
}

async function send(target: ReturnType<typeof createApp>, body: string): Promise<request.Response> {
  const path = settings.payoutPath;
  return request(target)
    .post(path)
    .set({ ...signPayout(key, path, body) })
    .send(body);
}

describe("the app", () => {
  test("answers 500 without a word about the cause when the payout cannot be written, and pays when it is sent again", async () => {
    const body = payoutBody("op.from.to");
    const broken: AppParts["ledger"] = {
      ...opened.ledger,
      accept() {
        throw new Error("disk full at /var/lib/platform.db");
      },
    };
    const failed = await send(app({ ledger: broken }), body);
    expect(failed.status).toBe(500);
    expect(failed.headers["content-type"]).toMatch(/^application\/problem\+json/);
    expect(failed.body).toEqual({ type: "about:blank", title: "Internal Server Error", status: 500 });
    expect(lines.join("")).toContain("disk full");
    expect((await send(app(), body)).status).toBe(200);
  });

  test("tells the worker after the commit", async () => {
    const rows: number[] = [];
    const onAccepted = (): void => {
      rows.push(opened.database.prepare("SELECT idempotency_key FROM payouts").all().length);
    };
    expect((await send(app({ onAccepted }), payoutBody("op.from.to"))).status).toBe(200);
    expect(rows).toEqual([1]);
  });

  test("is not ready during the shutdown, while it is healthy", async () => {
    const target = app({ isClosing: () => true });
    expect((await request(target).get("/readyz")).status).toBe(503);
    expect((await request(target).get("/healthz")).status).toBe(200);
  });
});
