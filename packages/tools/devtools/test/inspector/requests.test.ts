import { Agent } from "node:http";
import { GuardError } from "@countersign/core";
import { recordRawBody, verdicts } from "@countersign/core/internal";
import type { Explanation } from "@countersign/cli/explain";
import { memoryNonceStore } from "@countersign/http-signature-verify";
import { memoryIdempotencyStore } from "@countersign/idempotency";
import { payoutPlugin } from "@countersign/fastify";
import { payoutRoute } from "@countersign/fetch";
import { signPayload, signPayloadHeaders } from "@countersign/webhook-hmac";
import { beforeEach, describe, expect, jest, test } from "@jest/globals";
import { afterTest } from "@countersign/test-support/runs/after-test.ts";
import { fastify } from "fastify";
import { payoutBody } from "../../../../endpoints/countersign/test/payout/payout-body.ts";
import { createHandSigner, signByHand } from "../../../../endpoints/countersign/test/payout/sign-by-hand.ts";
import {
  clientAddress,
  hookPath,
  InspectorBench,
  payoutPath,
  payoutText,
  seeded,
  signer,
} from "./inspector-bench.ts";
import { send, type Answer } from "@countersign/test-support/servers/page-client.ts";
import { eventually } from "@countersign/test-support/runs/eventually.ts";

const bench = new InspectorBench();
beforeEach(() => bench.open());

type Explained = Explanation & { readonly guard: string };

const explained = async (): Promise<readonly Explained[]> =>
  (await bench.newest())["explanations"] as Explained[];
const uuid = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/;

describe("a payout that passes", () => {
  test("is shown with each verdict, its life, its bytes, base, nonce and the key in the store", async () => {
    const before = Date.now();
    expect((await bench.pay("key-1")).status).toBe(200);
    const { status, body: list } = await bench.ask("/inspector/requests");
    expect(status).toBe(200);
    expect(list).toMatchObject({
      total: 1,
      requests: [
        {
          id: 1,
          method: "POST",
          target: payoutPath,
          outcome: "pass",
          status: 200,
          guards: 6,
          keyid: signer.keyid,
          idempotencyKey: "payout:key-1.a.b",
        },
      ],
    });
    const detail = await bench.newest();
    expect(detail["at"]).toBeGreaterThanOrEqual(before);
    expect(detail["durationMs"]).toBeGreaterThan(0);
    expect(detail).toMatchObject({
      scheme: "http",
      clientAddress,
      body: { state: "read", bytes: payoutText("key-1").length, isCut: false, text: payoutText("key-1") },
      nonce: expect.stringMatching(uuid),
      explanations: [],
      bases: { expected: expect.stringContaining('"@path": /api/v1/transaction\\n') },
      claim: { what: "claim-done", sentence: expect.stringContaining("key-1") },
    });
    const shown = detail["verdicts"] as { guard: string; id: string; at: number }[];
    expect(shown.map(({ guard }) => guard)).toEqual([
      "ipAllowlist",
      "httpSignatureVerify",
      "payoutRequest",
      "jsonBody",
      "readPayout",
      "idempotencyGuard",
    ]);
    for (const verdict of shown) expect(verdict).toMatchObject({ id: expect.stringMatching(uuid) });
    expect(detail["headers"]).toContainEqual(["Content-Type", "application/json"]);
    const life = (detail["life"] as { what: string; outcome: string; text: string }[]).map(
      ({ what, outcome, text }) => `${what} ${outcome} ${text}`,
    );
    expect(life).toEqual([
      "store ok memory claim-nonce",
      "store ok memory claim",
      'claim acquired key "payout:key-1.a.b"',
      "store ok memory complete",
      'settled done key "payout:key-1.a.b"',
    ]);
  });

  test("is found by the id of any of its verdicts, and by its URN", async () => {
    await bench.pay("key-1");
    const { verdicts: shown } = (await bench.newest()) as { verdicts: { id: string }[] };
    for (const id of [shown[0]?.id, `urn:uuid:${shown[5]?.id}`, shown[3]?.id.toUpperCase()]) {
      expect(await bench.ask(`/inspector/verdicts/${id}`)).toMatchObject({ status: 200, body: { id: 1 } });
    }
    const unknown = await bench.ask("/inspector/verdicts/00000000-0000-4000-8000-000000000000");
    expect(unknown).toMatchObject({ status: 404, body: { code: "not-found", title: "Not Found" } });
    for (const id of ["0", "2", "x", "-1"])
      expect(await bench.ask(`/inspector/requests/${id}`)).toMatchObject({ status: 404 });
  });

  test("counts as a use of its key", async () => {
    const body = payoutText("key-1");
    const headers = { ...signByHand(signer, { path: payoutPath, body, nonce: "nonce-1" }) };
    await bench.pay("key-1", { headers });
    expect((await bench.pay("key-1", { headers })).status).toBe(401);
    await bench.pay("key-2", {
      headers: { ...signByHand(createHandSigner("nobody"), { path: payoutPath, body }) },
    });
    // To look at a request is no use of its key.
    for (const id of [1, 2, 3]) await bench.ask(`/inspector/requests/${id}`);
    const { body: overview } = await bench.ask("/inspector/overview");
    expect(overview).toMatchObject({
      version: expect.stringMatching(/^\d+\.\d+\.\d+/),
      kept: 500,
      counts: { pass: 1, reject: 2, error: 0 },
      guards: expect.arrayContaining(["httpSignatureVerify", "idempotencyGuard"]),
      keys: [
        { keyid: signer.keyid, uses: 2, refused: 1, lastUsedAt: expect.any(Number) },
        { keyid: "nobody", uses: 0, refused: 1 },
      ],
      explains: { signature: true, hmac: true, basicAuth: true, addresses: true },
    });
    const { body: refused } = await bench.ask("/inspector/requests/2");
    expect(refused).toMatchObject({
      outcome: "reject",
      code: "nonce-replayed",
      guard: "httpSignatureVerify",
      nonce: "nonce-1",
    });
    expect(refused["explanations"]).toEqual([
      expect.objectContaining({ sentence: expect.stringMatching(/^Use a nonce of its own/) }),
    ]);
  });
});

test("requests of one connection, also at once, have each their own life", async () => {
  const agent = new Agent({ keepAlive: true, maxSockets: 2 });
  const pay = (key: string): Promise<Answer> => {
    const body = payoutText(key);
    const headers = { "X-Forwarded-For": clientAddress, ...signByHand(signer, { path: payoutPath, body }) };
    return send(bench.origin + payoutPath, { method: "POST", headers, body, agent });
  };
  const keys = Array.from({ length: 12 }, (_, index) => `key-${index}`);
  const answers = await Promise.all(keys.map(pay));
  agent.destroy();
  expect(answers.map(({ status }) => status)).toEqual(keys.map(() => 200));
  for (let id = 1; id <= keys.length; id += 1) {
    const { body } = await bench.ask(`/inspector/requests/${id}`);
    const life = body["life"] as { what: string; text: string }[];
    expect(life.map(({ what, text }) => (what === "store" ? text : what))).toEqual([
      "memory claim-nonce",
      "memory claim",
      "claim",
      "memory complete",
      "settled",
    ]);
    for (const { what, text } of life)
      if (what !== "store") expect(text).toBe(`key "${String(body["idempotencyKey"])}"`);
  }
});

describe("the list", () => {
  test("is newest first, by outcome and by pages", async () => {
    await bench.pay("key-1");
    await bench.pay("key-2", { headers: { "Content-Type": "text/plain" } });
    await bench.pay("key-2");
    const ids = async (query: string): Promise<unknown> =>
      ((await bench.ask(`/inspector/requests?${query}`)).body["requests"] as { id: number }[]).map(
        ({ id }) => id,
      );
    expect(await ids("")).toEqual([3, 2, 1]);
    expect(await ids("limit=2")).toEqual([3, 2]);
    expect(await ids("limit=2&before=2")).toEqual([1]);
    expect(await ids("outcome=reject")).toEqual([2]);
    expect((await bench.ask("/inspector/requests?outcome=reject")).body).toMatchObject({ total: 1 });
    for (const query of ["outcome=all", "limit=0", "limit=x", "limit=201", "before=-1", "limit=1&limit=2"])
      expect(await bench.ask(`/inspector/requests?${query}`)).toMatchObject({ status: 400 });
  });
});

describe("an explanation", () => {
  const at = Date.UTC(2026, 0, 1);
  const hook = Buffer.from('{"event":"paid"}');
  const body = payoutText("key-1");
  const signedWith = (change: object): Record<string, string> => ({
    ...signByHand(signer, { path: payoutPath, body, ...change }),
  });

  test.each<[string, Record<string, string>, RegExp]>([
    ["the method in lower case", signedWith({ method: "post" }), /^Sign "@method" as "POST"/],
    [
      "a body that was written again",
      signedWith({ body: JSON.stringify(JSON.parse(body), null, 2) }),
      /^Compute Content-Digest over the bytes that are sent/,
    ],
  ])("names the mistake in its first sentence: %s", async (_name, headers, sentence) => {
    expect((await bench.pay("key-1", { body, headers })).status).toBe(401);
    const [first, ...others] = await explained();
    expect(first).toMatchObject({ guard: "httpSignatureVerify", sentence: expect.stringMatching(sentence) });
    expect(others).toEqual([]);
  });

  test("of a signature that came late does not judge a body that was not read", async () => {
    const late = signedWith({ now: Math.floor(Date.now() / 1000) - 3600 });
    await bench.pay("key-1", { body, headers: late });
    const detail = await bench.newest();
    expect(detail).toMatchObject({ code: "signature-expired", body: { state: "not-read", isCut: false } });
    const [first] = detail["explanations"] as Explained[];
    expect(first?.code).toBe("signature-expired");
    expect(first?.details.join(" ")).toContain("the body was not read, so it is not known whether they fit");
  });

  test("of an address names the hop", async () => {
    await bench.pay("key-1", { headers: { "X-Forwarded-For": `${clientAddress}, 198.51.100.7` } });
    const [first] = await explained();
    expect(first).toMatchObject({ guard: "ipAllowlist", code: "ip-not-allowed" });
    expect(first?.details.join(" ")).toContain('"198.51.100.7", taken');
  });

  test("of a payload names the member", async () => {
    const bytes = JSON.stringify({ ...payoutBody, business_id: undefined, businessId: "b" });
    expect((await bench.pay("", { body: bytes })).status).toBe(400);
    const [first] = await explained();
    expect(first).toMatchObject({ guard: "readPayout", what: "payload-member-name" });
  });

  test("of a key that is done is the message of the check, and what the store says now", async () => {
    await bench.pay("key-1");
    expect((await bench.pay("key-1")).status).toBe(409);
    const detail = await bench.newest();
    expect(detail).toMatchObject({
      code: "already-processed",
      explanations: [{ guard: "idempotencyGuard", code: "already-processed" }],
      claim: { what: "claim-done", code: "already-processed" },
    });
  });

  test.each<[string, Record<string, string>, string, RegExp]>([
    [
      "another password",
      { Authorization: `Basic ${Buffer.from("seeded-user:wrong").toString("base64")}` },
      "webhookBasicAuth",
      /password/,
    ],
    ["an HMAC in hex", { "X-Payload-Signature": "00".repeat(32) }, "webhookHmac", /./],
    ["no HMAC", { "X-Payload-Signature": "" }, "webhookHmac", /X-Payload-Signature/],
  ])("of a webhook: %s", async (_name, headers, guard, sentence) => {
    expect((await bench.notify("{}", headers)).status).toBe(404);
    const detail = await bench.newest();
    expect(detail).toMatchObject({ outcome: "reject", guard, status: 404 });
    expect(detail["explanations"]).toEqual([
      expect.objectContaining({ guard, sentence: expect.stringMatching(sentence) }),
    ]);
  });

  test.each([
    ["of one field", undefined, { "X-Payload-Signature": signPayload(hook, "another") }],
    ["of a scheme without a timestamp", "github", signPayloadHeaders(hook, "another", { scheme: "github" })],
    [
      "of a scheme with a timestamp, as of when it came",
      "stripe",
      signPayloadHeaders(hook, "another", { scheme: "stripe", timestampSeconds: at / 1000 }),
    ],
  ] as const)("of an HMAC %s says what to do", async (_name, scheme, headers) => {
    await bench.open({ hmac: { secret: seeded.secret, ...(scheme && { scheme }) } });
    const req = { method: "POST", url: hookPath, rawHeaders: Object.entries(headers).flat() };
    recordRawBody(req, hook);
    const error = new GuardError({ status: 401, code: "payload-signature-wrong", message: "no" });
    const clock = jest.spyOn(Date, "now").mockReturnValue(at);
    verdicts.publish({ name: "webhookHmac", req }, verdicts.start(), error);
    clock.mockRestore();
    expect(await explained()).toMatchObject([{ guard: "webhookHmac", what: "hmac-wrong-secret" }]);
  });

  test("is the code's cause and remedy where nothing explains it", async () => {
    await bench.open({ signature: undefined, addresses: undefined });
    await bench.pay("key-1", { body, headers: signedWith({ method: "post" }) });
    const detail = await bench.newest();
    expect(detail["bases"]).toBeUndefined();
    expect(detail["explanations"]).toEqual([
      expect.objectContaining({
        code: "signature-mismatch",
        details: [
          expect.stringMatching(/^Cause: The signature is not that of this request/),
          expect.stringMatching(/^Remedy: Compare the bases of both sides/),
        ],
      }),
    ]);
    expect((detail["verdicts"] as object[]).at(-1)).toMatchObject({
      code: "signature-mismatch",
      meaning: { kind: "status 401", cause: expect.any(String), remedy: expect.any(String) },
    });
  });
});

describe("bytes", () => {
  test("that are no UTF-8 are base64", async () => {
    const bytes = Buffer.from([0xff, 0xfe, 0x7b]);
    await bench.notify(bytes);
    expect((await bench.newest())["body"]).toEqual({
      state: "read",
      bytes: 3,
      isCut: false,
      base64: bytes.toString("base64"),
    });
  });

  test("beyond the limit are cut between two characters, and not explained as if they were whole", async () => {
    await bench.open({ bodyLimitBytes: 10 });
    await bench.notify(`"${"é".repeat(5000)}"`, {
      "X-Payload-Signature": Buffer.alloc(32).toString("base64"),
    });
    const detail = await bench.newest();
    expect(detail["body"]).toEqual({ state: "read", bytes: 10_002, isCut: true, text: '"éééé' });
    const [first] = detail["explanations"] as Explained[];
    expect(first?.details.join(" ")).toContain("not here as a whole");
  });

  test("of a request without any are empty", async () => {
    await send(bench.origin + hookPath, { headers: { "X-Forwarded-Proto": "https" } });
    expect((await bench.newest())["body"]).toEqual({ state: "empty", bytes: 0, isCut: false });
  });
});

describe("the key of a request", () => {
  test("is shown with who holds it, without token and fingerprint", async () => {
    let release = (): void => undefined;
    bench.hold = new Promise((resolve) => (release = resolve));
    const running = bench.pay("key-run");
    await eventually(() => bench.store.read("payout:key-run.a.b")?.state === "running");
    expect((await bench.pay("key-run")).status).toBe(503);
    const { body, text } = await bench.ask("/inspector/requests/2");
    expect(body["claim"]).toMatchObject({
      what: "claim-running",
      code: "in-flight",
      sentence: expect.stringContaining("Wait and send it again"),
    });
    const record = bench.store.read("payout:key-run.a.b");
    for (const hidden of [record?.token ?? "", record?.fingerprint ?? ""]) expect(text).not.toContain(hidden);
    release();
    await running;
    expect((await bench.ask("/inspector/requests/2")).body["claim"]).toMatchObject({ what: "claim-done" });
  });

  test("is left out while no store answers", async () => {
    await bench.close();
    const dead = { read: () => Promise.reject(new Error("gone")) } as never;
    await bench.open({ stores: { dead } });
    await bench.pay("key-1");
    const detail = await bench.newest();
    expect(detail).toMatchObject({ id: 1, idempotencyKey: "payout:key-1.a.b" });
    expect(detail).not.toHaveProperty("claim");
  });
});

describe("the stream", () => {
  test("tells the numbers of requests that are new or have changed, and of keys", async () => {
    const told = bench.stream((text) => text.includes('"reject":1'));
    await bench.pay("key-1");
    await bench.pay("key-1");
    const events = (await told)
      .split("\n")
      .filter((line) => line.startsWith("data: "))
      .map((line) => JSON.parse(line.slice("data: ".length)) as Record<string, unknown>);
    expect(events.flatMap(({ kinds }) => kinds)).toEqual(expect.arrayContaining(["keys", "stores"]));
    expect(events.at(-1)).toMatchObject({
      counts: { pass: 1, reject: 1, error: 0 },
      changed: expect.arrayContaining([2]),
    });
  });
});

describe("another adapter is shown as Express is:", () => {
  const options = () => ({
    addresses: { allow: ["127.0.0.1"] },
    signature: { keys: { [signer.keyid]: signer.publicKeyPem }, nonces: memoryNonceStore() },
    idempotency: { store: memoryIdempotencyStore() },
    referenceField: "reference",
  });
  const body = payoutText("key-1");
  type Post = (headers: Record<string, string>) => Promise<number>;

  async function onFastify(): Promise<Post> {
    const app = fastify();
    void app.register(payoutPlugin({ ...options(), url: payoutPath, handler: () => ({ paid: true }) }));
    const origin = await app.listen({ host: "127.0.0.1", port: 0 });
    afterTest(() => app.close());
    return async (headers) => (await send(origin + payoutPath, { method: "POST", headers, body })).status;
  }

  async function onFetch(): Promise<Post> {
    const route = payoutRoute(options(), () => Response.json({ paid: true }));
    const url = `https://platform.example${payoutPath}`;
    return async (headers) => {
      const request = new Request(url, { method: "POST", headers, body });
      return (await route(request, { clientAddress: "127.0.0.1" })).status;
    };
  }

  // What a fetch adapter answers somebody else sends.
  test.each<[string, () => Promise<Post>, string, number[]]>([
    ["Fastify", onFastify, "http", [401, 200]],
    ["fetch", onFetch, "https", []],
  ])("%s", async (_name, open, scheme, shown) => {
    const post = await open();
    expect(await post({ ...signByHand(signer, { path: payoutPath, body, method: "post" }) })).toBe(401);
    const refused = await bench.newest();
    const request = { method: "POST", target: payoutPath, scheme, clientAddress: "127.0.0.1" };
    expect(refused).toMatchObject({ id: 1, ...request });
    expect(refused["explanations"]).toEqual([
      expect.objectContaining({ sentence: expect.stringContaining('"@method"') }),
    ]);
    expect(await post({ ...signByHand(signer, { path: payoutPath, body }) })).toBe(200);
    const passed = await bench.newest();
    expect(passed).toMatchObject({ id: 2, outcome: "pass", body: { state: "read", text: body } });
    expect([refused["status"], passed["status"]]).toEqual([shown[0], shown[1]]);
    expect(passed["life"]).toContainEqual(expect.objectContaining({ what: "settled" }));
  });
});

test("what a webhook's sender writes stays what it is, and its secrets are hidden", async () => {
  const text = `{"a":"\u0007<img src=x onerror=alert(1)>","p":"${seeded.other}"}`;
  await bench.notify(text);
  const { body } = (await bench.newest()) as { body: { text: string } };
  expect(body.text).toBe(text.replace(seeded.other, "[masked]"));
});
