import { generateKeyPairSync } from "node:crypto";
import type { Server } from "node:http";
import { beforeAll, afterAll, describe, expect, test } from "@jest/globals";
import { guardChannel, type GuardEvent } from "@countersign/core";
import { guardErrors } from "@countersign/express";
import { httpSignatureVerify, memoryNonceStore } from "@countersign/http-signature-verify";
import express, { type Express } from "express";
import { close, listen, send } from "@countersign/test-support/servers/http-client.ts";
import { capturedRequest } from "../../dist/explain/captured-request.js";
import {
  samplePath,
  signRequest,
  type SigningPlan,
} from "@countersign/test-support/signers/independent-signer.ts";
import { servicePublicPem } from "@countersign/test-support/signers/test-keys.ts";
import { refusalExplainer } from "../../dist/explain/index.js";
import { allowWarnings } from "@countersign/test-support/runs/expect-warning.ts";

const keys = { "test-key": servicePublicPem };
const otherPublicPem = generateKeyPairSync("ed25519")
  .publicKey.export({ type: "spki", format: "pem" })
  .toString();
type Signed = ReturnType<typeof signRequest>;
let server: Server;
let port = 0;

beforeAll(async () => {
  const app = express();
  app.use(samplePath, httpSignatureVerify({ keys, nonces: memoryNonceStore() }), (_req, res) => {
    res.json({});
  });
  app.use(guardErrors());
  ({ server, port } = await listen(app));
});
afterAll(() => close(server));

/** Sends a request that says PUT and is signed as POST. */
async function sendPut(plan: SigningPlan = {}): Promise<number> {
  const { status } = await send(port, { ...signRequest(plan), method: "PUT" });
  return status;
}

/** The event of its refusal, and those of the other requests. */
async function refusedPut(...others: readonly Signed[]): Promise<readonly [GuardEvent, ...GuardEvent[]]> {
  const heard: GuardEvent[] = [];
  const hear = (event: unknown): void => void heard.push(event as GuardEvent);
  guardChannel.subscribe(hear);
  await sendPut();
  for (const other of others) await send(port, other);
  guardChannel.unsubscribe(hear);
  return heard as [GuardEvent, ...GuardEvent[]];
}

describe("refusalExplainer", () => {
  test("explains a refused signature, and nothing else", async () => {
    const explain = refusalExplainer({ keys });
    const request = signRequest();
    const heard = await refusedPut(request, request);
    expect(await Promise.all(heard.map(explain))).toEqual([
      'Sign "@method" as "PUT": the signature fits with "POST", another method.',
      undefined,
      undefined,
    ]);
    expect(await explain({ ...heard[0], guard: "ipAllowlist" })).toBeUndefined();
  });

  test("makes one explanation after the other, however many are asked for at once", async () => {
    const [refused] = await refusedPut();
    let made = 0;
    const madeBefore = new Set<number>();
    // The check asks for the time when an explanation begins.
    const clock = (): number => {
      madeBefore.add(made);
      return Date.now();
    };
    const explain = refusalExplainer({ keys: { "test-key": otherPublicPem }, clock });
    await Promise.all(
      Array.from({ length: 10 }, async () => {
        expect(await explain(refused)).toContain("the signature fits no usual mistake");
        made += 1;
      }),
    );
    expect([...madeBefore]).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  });

  test("says what it has dropped, of all explainers together, and goes on", async () => {
    const [refused] = await refusedPut();
    const [one, other] = [refusalExplainer({ keys }), refusalExplainer({ keys })];
    const texts = await Promise.all(
      Array.from({ length: 30 }, (_, index) => (index % 2 === 0 ? one : other)(refused)),
    );
    expect(texts.slice(0, 20)).toEqual(Array.from({ length: 20 }, () => expect.stringContaining("@method")));
    expect(new Set(texts.slice(20))).toEqual(new Set(["not explained: 20 explanations are waiting"]));
    expect(await one(refused)).toContain("@method");
  });

  test("says nothing in production, unless it is asked to", async () => {
    const [refused] = await refusedPut();
    const environment = process.env["NODE_ENV"];
    process.env["NODE_ENV"] = "production";
    try {
      expect(await refusalExplainer({ keys })(refused)).toBeUndefined();
      expect(await refusalExplainer({ keys, allowInProduction: true })(refused)).toContain("@method");
    } finally {
      process.env["NODE_ENV"] = environment;
    }
  });

  test.each([{ keys: {} }, { keys, unknown: 1 }, { keys, maxAttempts: -1 }])("refuses %o", (options) => {
    expect(() => refusalExplainer(options)).toThrow(TypeError);
  });
});

describe("capturedRequest", () => {
  test("is undefined of what no check has looked at, and of what is no request", () => {
    for (const req of [new Request("http://localhost/"), {}, { raw: 1 }, { raw: {} }, { rawHeaders: 1 }]) {
      expect(capturedRequest(req)).toBeUndefined();
    }
  });

  async function capturedIn(app: Express, path: string): Promise<unknown> {
    let captured: unknown = "not asked";
    app.use(path, (req, res) => {
      captured = capturedRequest(req);
      res.end();
    });
    const other = await listen(app);
    await send(other.port, signRequest());
    await close(other.server);
    return captured;
  }

  test("is undefined where nobody can say how the client reached the server", async () => {
    expect(await capturedIn(express().set("trust proxy", true), "/")).toBeUndefined();
    // Once for each process, whichever test is the first.
    allowWarnings(/^\[trust-proxy-unsafe\]/);
  });

  test("knows a Node request before any check, its body not yet read", async () => {
    const known = { method: "POST", target: samplePath, scheme: "http", body: undefined };
    expect(await capturedIn(express(), "/api")).toMatchObject(known);
  });
});
