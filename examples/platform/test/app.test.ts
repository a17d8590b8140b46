import type { Settings } from "@countersign/example-settings";
import { payoutStoreKey } from "@countersign/payout";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { pino } from "pino";
import request from "supertest";
import { createApp, type AppParts } from "../src/app.ts";
import { importVerificationKey } from "@countersign/http-message-signatures";
import type { SqliteStorage } from "../src/engines/sqlite.ts";
import { memoryStorage } from "./test-storage.ts";
import { makeTestKey, payoutBody, signPayout } from "./signer.ts";

const path = "/api/v1/transaction";
const key = makeTestKey("service-1");
const keys = new Map([[key.keyid, importVerificationKey(key.keyid, key.publicKeyPem)]]);
const settings: Settings = {
  port: 0,
  host: "127.0.0.1",
  store: { kind: "memory" },
  payoutPath: path,
  keys: { kind: "fixed", keys },
  allowedIps: ["127.0.0.1", "::1"],
  trustProxy: [],
  pathPrefix: undefined,
  referenceField: undefined,
  businesses: undefined,
  confirmationUrl: undefined,
  confirmationApiKey: undefined,
  webhook: undefined,
  tls: undefined,
  inspectorPort: undefined,
  inspect: false,
  logLevel: "silent",
};

let opened: SqliteStorage;
let lines: string[];

beforeEach(() => {
  opened = memoryStorage();
  lines = [];
});

afterEach(() => opened.close());

function app(changes: Partial<AppParts> = {}): ReturnType<typeof createApp> {
  const { stores, ledger, parties } = opened;
  const logger = pino({}, { write: (line: string) => lines.push(line) });
  return createApp({
    settings,
    keys,
    inspectKeys: () => ({ accepted: [], used: [] }),
    stores,
    ledger,
    parties,
    logger,
    endpoints: [],
    isClosing: () => false,
    onAccepted: () => {},
    ...changes,
  });
}

type Store = AppParts["stores"]["idempotency"];

function storesWith(changes: {
  readonly [Member in keyof Store]?: Store[Member] | undefined;
}): AppParts["stores"] {
  const { idempotency, nonces } = opened.stores;
  return {
    nonces,
    idempotency: {
      claim: (...args) => idempotency.claim(...args),
      read: (...args) => idempotency.read(...args),
      heartbeat: (...args) => idempotency.heartbeat(...args),
      complete: (...args) => idempotency.complete(...args),
      release: (...args) => idempotency.release(...args),
      hold: (...args) => idempotency.hold(...args),
      resolve: (...args) => idempotency.resolve(...args),
      prune: () => idempotency.prune(),
      close: () => idempotency.close(),
      completeIn: (...args) => idempotency.completeIn!(...args),
      ...changes,
    } as Store,
  };
}

async function send(target: ReturnType<typeof createApp>, body: string): Promise<request.Response> {
  return request(target)
    .post(path)
    .set({ ...signPayout(key, path, body) })
    .send(body);
}

describe("the payout route", () => {
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

  test("writes nothing and answers 503 when another attempt has taken the key meanwhile", async () => {
    const body = payoutBody("op.from.to");
    const { ledger } = opened;
    const overtaken = storesWith({ completeIn: () => "lost" });
    const answer = await send(app({ stores: overtaken }), body);
    expect(answer.status).toBe(503);
    expect(lines.join("")).toContain('"code":"idempotency-lost"');
    expect(lines.join("")).not.toContain("a request failed");
    expect(await ledger.inspect()).toEqual([]);
  });

  test("is recorded as paid by the shutdown where the store did not take the record at once", async () => {
    const endpoints: AppParts["endpoints"] = [];
    let refusals = 5;
    const refusing = storesWith({
      completeIn: undefined,
      complete(...args) {
        if (refusals-- > 0) throw new Error("database is locked");
        return opened.stores.idempotency.complete(...args);
      },
    });
    expect((await send(app({ endpoints, stores: refusing }), payoutBody("op.from.to"))).status).toBe(503);
    const state = (): unknown => opened.stores.idempotency.read(payoutStoreKey("op.from.to"));
    expect(state()).toMatchObject({ state: "run" });
    await Promise.all(endpoints.map((endpoint) => endpoint.drain({ timeoutMs: 5_000 })));
    expect(state()).toMatchObject({ state: "done" });
  });

  test("tells the worker after the commit", async () => {
    const rows: number[] = [];
    const onAccepted = (): void => {
      rows.push(opened.database.prepare("SELECT idempotency_key FROM payouts").all().length);
    };
    expect((await send(app({ onAccepted }), payoutBody("op.from.to"))).status).toBe(200);
    expect(rows).toEqual([1]);
  });
});

describe("GET /readyz", () => {
  test("is 503 when the store does not answer", async () => {
    const stores = storesWith({
      read: () => {
        throw new Error("database is locked");
      },
    });
    const answer = await request(app({ stores })).get("/readyz");
    expect(answer.status).toBe(503);
    expect(answer.body).toEqual({ status: "unavailable" });
    expect(lines.join("")).toContain("database is locked");
  });

  test("is 503 during the shutdown, while /healthz stays 200", async () => {
    const target = app({ isClosing: () => true });
    expect((await request(target).get("/readyz")).status).toBe(503);
    expect((await request(target).get("/healthz")).status).toBe(200);
  });
});
