import type { RequestListener } from "node:http";
import { GuardError } from "@countersign/core";
import { publishNotice, verdicts } from "@countersign/core/internal";
import { guardErrors } from "@countersign/express";
import { payoutPlugin } from "@countersign/fastify";
import { checkedRoute, idempotentRoute, payoutRoute, type FetchRoute } from "@countersign/fetch";
import { memoryNonceStore } from "@countersign/http-signature-verify";
import { memoryIdempotencyStore } from "@countersign/idempotency";
import { payoutEndpoint } from "countersign/payout";
import { createStores } from "@countersign/store-sql";
import { send, type Answer } from "@countersign/test-support/servers/page-client.ts";
import { served } from "@countersign/test-support/servers/served.ts";
import { beforeEach, describe, expect, test } from "@jest/globals";
import Database from "libsql";
import express, { type ErrorRequestHandler } from "express";
import { fastify } from "fastify";
import { signByHand } from "../../../../endpoints/countersign/test/payout/sign-by-hand.ts";
import { InspectorBench, payoutPath, payoutText, seeded, signer } from "./inspector-bench.ts";

const bench = new InspectorBench();
beforeEach(() => bench.open());

interface Told {
  readonly from: string;
  readonly chain: readonly { readonly name: string; readonly message: string; readonly stack: string }[];
}

const told = async (): Promise<readonly Told[]> => (await bench.newest())["errors"] as readonly Told[];

/** What a platform's code throws: it names a secret, an address with a password, and a cause. */
function failing(): never {
  const cause = Object.assign(new Error("connect postgres://app:hunter2@db/ledger"), {
    code: "ECONNREFUSED",
  });
  throw new TypeError(`no ledger for ${seeded.other}`, { cause });
}

const expected = [
  {
    from: "handler",
    chain: [
      {
        name: "TypeError",
        message: "no ledger for [masked]",
        stack: expect.stringMatching(/^at failing \(.*exceptions\.test/),
      },
      { name: "Error", code: "ECONNREFUSED", message: "connect postgres://...@db/ledger" },
    ],
  },
];

const keys = () => ({
  addresses: { allow: ["127.0.0.1"] },
  signature: { keys: { [signer.keyid]: signer.publicKeyPem }, nonces: memoryNonceStore() },
  idempotency: { store: memoryIdempotencyStore() },
  referenceField: "reference" as const,
});
const body = payoutText("key-1");
const signed = (): Record<string, string> => ({ ...signByHand(signer, { path: payoutPath, body }) });

const answeredBy = async (listener: RequestListener): Promise<Answer> =>
  send((await served(listener)) + payoutPath, { method: "POST", headers: signed(), body });

const answering: ErrorRequestHandler = (_error, _req, res, _next) => {
  res.status(500).json({ status: "failed" });
};

describe("what a handler throws is shown, masked, and not to the caller", () => {
  test("on Express", async () => {
    const app = express().post(payoutPath, payoutEndpoint(keys()), failing).use(guardErrors(), answering);
    const { status, text } = await answeredBy(app);
    expect([status, text]).toEqual([500, '{"status":"failed"}']);
    expect(await told()).toMatchObject(expected);
    expect(JSON.stringify(await told())).not.toMatch(/hunter2|seeded-other/);
    const [row] = (await bench.ask("/inspector/requests")).body["requests"] as object[];
    expect(row).toMatchObject({ outcome: "pass", status: 500, threw: true });
  });

  test("on Express, where refusals are hidden", async () => {
    const hidden = guardErrors({ hide: true, onReject: () => undefined });
    const app = express().post(payoutPath, payoutEndpoint(keys()), failing).use(hidden);
    expect((await answeredBy(app)).status).toBe(404);
    expect(await told()).toMatchObject(expected);
  });

  test("on Express, by pay in its transaction, once", async () => {
    const database = new Database(":memory:");
    const stores = createStores({ database });
    const { addresses, signature, referenceField } = keys();
    const { nonces: _nonces, ...verify } = signature;
    const endpoint = payoutEndpoint({ addresses, signature: verify, referenceField, stores, pay: failing });
    const app = express().post(payoutPath, endpoint).use(guardErrors(), answering);
    const { status, text } = await answeredBy(app);
    stores.close();
    database.close();
    expect([status, text]).toEqual([500, '{"status":"failed"}']);
    expect(await told()).toMatchObject([{ ...expected[0], from: "idempotencyGuard" }]);
    const { explanations, outcome } = await bench.newest();
    expect(outcome).toBe("error");
    expect(explanations).toMatchObject([
      {
        sentence: expect.stringContaining("look at the exception"),
        details: [/^Cause/, /^Remedy/].map((line) => expect.stringMatching(line)),
      },
    ]);
  });

  test("on Fastify", async () => {
    const app = fastify();
    void app.register(payoutPlugin({ ...keys(), url: payoutPath, handler: async () => failing() }));
    await app.ready();
    const { status } = await answeredBy(app.routing.bind(app));
    await app.close();
    expect(status).toBe(500);
    expect(await told()).toMatchObject(expected);
  });

  test("on fetch", async () => {
    const request = () =>
      new Request(`https://platform.example${payoutPath}`, { method: "POST", headers: signed(), body });
    const route = (made: FetchRoute) => made(request(), { clientAddress: "127.0.0.1" });
    const owning = [
      payoutRoute(keys(), failing),
      idempotentRoute({ store: memoryIdempotencyStore(), key: () => "key-1" }, failing),
    ];
    for (const made of owning) {
      expect((await route(made)).status).toBe(500);
      expect(await told()).toMatchObject(expected);
    }
    const others = [
      idempotentRoute({ store: memoryIdempotencyStore(), key: () => undefined, required: false }, failing),
      checkedRoute({ name: "checked" }, () => undefined, failing),
    ];
    for (const made of others) {
      await expect(route(made)).rejects.toThrow("no ledger");
      expect(await told()).toMatchObject(expected);
    }
  });
});

describe("an exception", () => {
  const req = { method: "POST", url: "/p", rawHeaders: ["Host", "h"] };
  const refuse = (error: Error, on: object = req): void =>
    void verdicts.publish({ name: "check", req: on }, verdicts.start(), error);

  test("of what a check could not decide is its cause; a refusal is none", async () => {
    const refusal = { status: 503, code: "business-lookup-unavailable", message: "no answer" };
    refuse(new GuardError(refusal));
    const cause = new Error("the base differs");
    refuse(new GuardError({ status: 401, code: "signature-mismatch", message: "does not match", cause }));
    expect(await told()).toEqual([]);
    refuse(new GuardError({ ...refusal, cause: new Error("the register is away") }));
    expect(await told()).toMatchObject([
      { from: "check", chain: [{ name: "GuardError" }, { name: "Error", message: "the register is away" }] },
    ]);
  });

  test("that is a notice's is shown once, whoever tells of it", async () => {
    const error = new Error("the store is away");
    refuse(error);
    publishNotice({ guard: "check", code: "completion-delayed", message: "is delayed", req, error });
    expect(await told()).toHaveLength(1);
    const { life } = (await bench.newest()) as { life: object[] };
    expect(life).toMatchObject([{ what: "notice", meaning: { kind: "notice", remedy: expect.any(String) } }]);
  });

  test("is bounded in its texts, causes and number, and masked across the end", async () => {
    const secret = `${"x".repeat(1_990)}${seeded.other.repeat(1_000)}`;
    const endless = new Error(secret);
    endless.cause = endless;
    refuse(endless);
    for (let count = 0; count < 20; count += 1) refuse(new Error(`number ${count}`));
    const errors = await told();
    expect(errors).toHaveLength(10);
    expect(errors[0]?.chain).toHaveLength(5);
    for (const { message, stack } of errors[0]?.chain ?? []) {
      expect(message.length).toBeLessThanOrEqual(2_000);
      expect(stack.length).toBeLessThanOrEqual(8_000);
      expect(message).not.toContain(seeded.other.slice(0, 6));
    }
  });

  test.each<[string, unknown, object]>([
    ["a text", "the text", { name: "no Error, but string", message: "the text" }],
    ["an object", { message: "m" }, { name: "no Error, but object", message: "" }],
  ])("that is %s is shown as what it is", async (_name, thrown, first) => {
    const app = express().post(payoutPath, payoutEndpoint(keys()), () => {
      throw thrown;
    });
    app.use(guardErrors(), answering);
    await answeredBy(app);
    expect(await told()).toMatchObject([{ chain: [first] }]);
  });

  test("whose members throw is shown all the same", async () => {
    const error = new Error("shown");
    Object.defineProperty(error, "stack", { get: failing });
    Object.defineProperty(error, "cause", { get: failing });
    refuse(error);
    expect(await told()).toEqual([
      expect.objectContaining({ chain: [{ name: "Error", message: "shown", stack: "" }] }),
    ]);
  });
});
