import { generateKeyPairSync } from "node:crypto";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { Server } from "node:http";
import { setImmediate as nextTurn } from "node:timers/promises";
import { afterEach, beforeAll, afterAll, describe, expect, test } from "@jest/globals";
import { guardChannel, noticeChannelName, type GuardEvent } from "@countersign/core";
import { guardErrors } from "@countersign/express";
import { httpSignatureVerify, memoryNonceStore } from "@countersign/http-signature-verify";
import express, { type Express } from "express";
import { close, listen, send } from "@countersign/test-support/servers/http-client.ts";
import { capturedRequest } from "../dist/captured-request.js";
import {
  samplePath,
  signRequest,
  type SigningPlan,
} from "@countersign/test-support/signers/independent-signer.ts";
import { servicePublicPem } from "@countersign/test-support/signers/test-keys.ts";
import {
  refusalExplainer,
  signatureExplainer,
  type SignatureExplainer,
  type SignatureExplanation,
} from "../dist/index.js";

const keys = { "test-key": servicePublicPem };
const otherPublicPem = generateKeyPairSync("ed25519")
  .publicKey.export({ type: "spki", format: "pem" })
  .toString();
type Signed = ReturnType<typeof signRequest>;
let server: Server;
let port = 0;
const explainers: SignatureExplainer[] = [];

beforeAll(async () => {
  const app = express();
  app.use(samplePath, httpSignatureVerify({ keys, nonces: memoryNonceStore() }), (_req, res) => {
    res.json({});
  });
  app.use(guardErrors());
  ({ server, port } = await listen(app));
});
afterEach(() => explainers.splice(0).forEach((explainer) => explainer.close()));
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

/** What is written until there are so many of them. */
function written(options: object = {}): {
  all: SignatureExplanation[];
  until: (count: number) => Promise<void>;
} {
  const all: SignatureExplanation[] = [];
  const write = (explained: SignatureExplanation): void => void all.push(explained);
  explainers.push(signatureExplainer({ keys, ...options, write }));
  const until = async (count: number): Promise<void> => {
    while (all.length < count) await nextTurn();
  };
  return { all, until };
}

describe("signatureExplainer", () => {
  test("explains a signature that was refused, and nothing that was admitted", async () => {
    const { all, until } = written();
    expect((await send(port, signRequest())).status).toBe(200);
    expect(await sendPut()).toBe(401);
    await until(1);
    expect(all.map(({ sentence }) => sentence)).toEqual([
      'Sign "@method" as "PUT": the signature fits with "POST", another method.',
    ]);
  });

  test("explains at most so many in a minute", async () => {
    let nowMs = Date.now();
    const { all, until } = written({ perMinute: 2, clock: () => nowMs });
    for (let count = 0; count < 5; count += 1) await sendPut();
    await until(2);
    nowMs += 60_000;
    await sendPut();
    await until(3);
    expect(all).toHaveLength(3);
  });

  test("says on countersign:notice what it has dropped", async () => {
    const notices: unknown[] = [];
    const hear = (notice: unknown): void => void notices.push(notice);
    subscribe(noticeChannelName, hear);
    try {
      const [refused] = await refusedPut();
      const { until } = written({ perMinute: 600 });
      for (let count = 0; count < 25; count += 1) guardChannel.publish(refused);
      await until(20);
      expect(notices).toEqual(
        Array.from({ length: 5 }, () => ({
          guard: "signatureExplainer",
          code: "explanation-dropped",
          message: "not explained: 20 explanations are waiting",
        })),
      );
    } finally {
      unsubscribe(noticeChannelName, hear);
    }
  });

  test("goes on when write throws", async () => {
    let calls = 0;
    const failing = signatureExplainer({
      keys,
      write: () => {
        calls += 1;
        throw new Error("the log is full");
      },
    });
    explainers.push(failing);
    await sendPut();
    const { until } = written();
    await sendPut();
    await until(1);
    expect(calls).toBeGreaterThan(0);
  });

  test.each([[{ perMinute: 0 }], [{ write: 1 }], [{ keys: {} }], [{ unknown: 1 }]])(
    "refuses %o",
    (options) => {
      expect(() => signatureExplainer({ keys, write: () => undefined, ...(options as object) })).toThrow(
        TypeError,
      );
    },
  );
});

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

  test("says nothing in production, as signatureExplainer, unless it is asked to", async () => {
    const [refused] = await refusedPut();
    const environment = process.env["NODE_ENV"];
    const write = (): void => undefined;
    process.env["NODE_ENV"] = "production";
    try {
      expect(await refusalExplainer({ keys })(refused)).toBeUndefined();
      expect(await refusalExplainer({ keys, allowInProduction: true })(refused)).toContain("@method");
      expect(signatureExplainer({ keys, write }).isActive).toBe(false);
      explainers.push(signatureExplainer({ keys, write, allowInProduction: true }));
      expect(explainers[0]?.isActive).toBe(true);
    } finally {
      process.env["NODE_ENV"] = environment;
    }
  });

  test.each([{ keys: {} }, { keys, perMinute: 1 }, { keys, maxAttempts: -1 }])("refuses %o", (options) => {
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
  });

  test("knows a Node request before any check, its body not yet read", async () => {
    const known = { method: "POST", target: samplePath, scheme: "http", body: undefined };
    expect(await capturedIn(express(), "/api")).toMatchObject(known);
  });
});
