import { once } from "node:events";
import { connect } from "node:net";
import { describe, expect, jest, test } from "@jest/globals";
import { captureRawBody, jsonBody, rawBody } from "@countersign/raw-body";
import {
  signPayload,
  verifiedPayload,
  webhookHmac,
  type WebhookHmacOptions,
} from "@countersign/webhook-hmac";
import { close, listen } from "@countersign/test-support/servers/http-client.ts";
import { post, requestOf, run, siteWith, expressVersions } from "./harness.ts";

type SecretsFunction = Extract<WebhookHmacOptions["secrets"], (...args: never[]) => unknown>;

const secret = "test-secret";
const name = "X-Payload-Signature";
const body = Buffer.from(
  '{"webhook_id":"wh_1","timestamp":"2024-01-02T03:04:05.123456789Z","events":[{"event_id":"ev_1",' +
    '"timestamp":"2024-01-02T03:04:05.1Z","type":"buyer.status_changed","data":{"amount":"10.10"}}]}',
);
// Computed by another implementation.
const right = "vajd4eF7ymePHdf08eWE3L5VMvPqPC1ttZ5xBdvBIu4=";
const hex = Buffer.from(right, "base64").toString("hex");
const codeOf = (error: unknown): unknown => (error as { code?: unknown } | undefined)?.code;

describe.each(expressVersions)("webhookHmac on %s", (_version, express) => {
  test.each([
    ["alone", () => [webhookHmac({ secret })]],
    ["after rawBody()", () => [rawBody(), webhookHmac({ secret })]],
    ["before jsonBody()", () => [webhookHmac({ secret }), jsonBody()]],
    ["twice", () => [webhookHmac({ secret }), webhookHmac({ secret })]],
    [
      "after express.json({ verify: captureRawBody })",
      () => [express.json({ verify: captureRawBody }), webhookHmac({ secret })],
    ],
    ["after express.raw()", () => [express.raw({ type: "*/*" }), webhookHmac({ secret })]],
  ])("verifies the known answer, %s", async (_name, guards) => {
    const { app, passages, refusals } = siteWith(express, ...guards());
    const type = ["Content-Type", "application/json"];
    expect((await post(app, [...type, name, right], body)).status).toBe(204);
    const tampered = Buffer.from(body.toString().replace("10.10", "10.11"));
    expect((await post(app, [...type, name, right], tampered)).status).toBe(401);
    expect(refusals.map(({ code }) => code)).toEqual(["payload-signature-wrong"]);
    expect(passages).toEqual([
      { webhook: { secretIndex: 0 }, payload: { bytes: body, secretIndex: 0 }, rawBody: body },
    ]);
  });

  test.each<[string, string, readonly string[]]>([
    ["a wrong signature after the right one", "malformed", [right, right.replace("v", "w")]],
    ["a comma after it", "malformed", [`${right},`]],
    ["no padding", "malformed", [right.slice(0, -1)]],
    ["too much padding", "malformed", [`${right}=`]],
    ["base64url", "malformed", ["vajd4eF7ymePHdf08eWE3L5VMvPqPC1ttZ5xBdvB_u4="]],
    ["hex where it is not allowed", "malformed", [hex]],
    ["white space inside", "malformed", [right.replace("7", "7 ")]],
    ["an altered last bit", "malformed", [right.replace("4=", "5=")]],
    ["quotation marks around it", "malformed", [`"${right}"`]],
    ["the form of a structured field", "malformed", [`:${right}:`]],
    ["an algorithm before it", "malformed", [`sha256=${right}`]],
    ["a no-break space after it", "malformed", [`${right}\u00a0`]],
    ["31 bytes", "malformed", [Buffer.alloc(31, 1).toString("base64")]],
    ["33 bytes", "malformed", [Buffer.alloc(33, 1).toString("base64")]],
    ["one byte off at the start", "wrong", [right.replace("v", "w")]],
    ["one byte off at the end", "wrong", [right.replace("4=", "8=")]],
    ["the case of one letter changed", "wrong", [right.replace("a", "A")]],
    ["the right length under a wrong key", "wrong", [signPayload(body, "test-secret-2")]],
  ])("refuses %s", async (_name, reason, lines) => {
    const { app, refusals, passages } = siteWith(express, webhookHmac({ secret }));
    const headers = lines.flatMap((line) => [name, line]);
    expect((await post(app, headers, body)).status).toBe(401);
    expect(refusals.map(({ code }) => code)).toEqual([`payload-signature-${reason}`]);
    expect(passages).toEqual([]);
  });

  test("answers every refusal alike, and shows no signature and no secret", async () => {
    const { app, refusals } = siteWith(express, webhookHmac({ secret }));
    const answers = [];
    for (const headers of [[], [name, "x"], [name, right, name, right], [name, right.replace("v", "w")]]) {
      const answer = await post(app, headers, body);
      answers.push(JSON.stringify({ ...answer, headers: { ...answer.headers, date: "" } }));
    }
    expect(new Set(answers).size).toBe(1);
    const shown = [...answers, ...refusals.map(({ stack }) => stack)].join();
    for (const text of [secret, right.slice(1, 20)]) expect(shown).not.toContain(text);
  });

  test.each([
    ["missing", []],
    ["malformed", [`${name}: AAAA`]],
  ])("refuses a %s signature before it reads the body", async (reason, lines) => {
    const { app, refusals } = siteWith(express, webhookHmac({ secret }));
    const { server, port } = await listen(app);
    const socket = connect(port, "127.0.0.1");
    // The announced body never comes: only an answer without it ends the exchange.
    const head = ["POST /hook HTTP/1.1", "Host: a", "Connection: close", "Content-Length: 1000", ...lines];
    socket.write(`${head.join("\r\n")}\r\n\r\n`);
    let answer = "";
    socket.setEncoding("latin1").on("data", (chunk: string) => {
      answer += chunk;
    });
    await once(socket, "close");
    await close(server);
    expect(answer).toMatch(/^HTTP\/1.1 401 /);
    expect(refusals.map(({ code }) => code)).toEqual([`payload-signature-${reason}`]);
  });

  test("holds the body to its limit, by default one megabyte", async () => {
    const megabyte = Buffer.alloc(1024 * 1024, "a");
    const over = Buffer.concat([megabyte, Buffer.from("a")]);
    const { app, refusals } = siteWith(express, webhookHmac({ secret }));
    expect((await post(app, [name, signPayload(megabyte, secret)], megabyte)).status).toBe(204);
    expect((await post(app, [name, signPayload(over, secret)], over)).status).toBe(413);
    const small = siteWith(express, webhookHmac({ secret, limit: 3 }));
    const four = Buffer.from("four");
    expect((await post(small.app, [name, signPayload(four, secret)], four)).status).toBe(413);
    expect([...refusals, ...small.refusals].map(({ code }) => code)).toEqual([
      "body-too-large",
      "body-too-large",
    ]);
  });

  test("asks an async secrets function for each request, and refuses on its rejection", async () => {
    const secrets: SecretsFunction = async (req) => {
      await Promise.resolve();
      if (req.headers["x-tenant"] === "broken") throw new Error("no database");
      return req.headers["x-tenant"] === "a" ? ["test-secret-2", secret] : ["test-secret-2"];
    };
    const { app, refusals, passages } = siteWith(express, webhookHmac({ secrets }));
    expect((await post(app, [name, right, "X-Tenant", "a"], body)).status).toBe(204);
    expect((await post(app, [name, right, "X-Tenant", "b"], body)).status).toBe(401);
    const broken = await post(app, [name, right, "X-Tenant", "broken"], body);
    expect([broken.status, broken.headers["retry-after"]]).toEqual([503, "5"]);
    expect(refusals.map(({ code }) => code)).toEqual(["payload-signature-wrong", "secrets-unavailable"]);
    expect(passages.map(({ webhook }) => webhook)).toEqual([{ secretIndex: 1 }]);
  });
});

describe("webhookHmac", () => {
  test.each([
    ["white space around it", ` \t${right}\t `, {}],
    ["hex where it is allowed", hex, { scheme: { header: name, signatureEncodings: ["hex"] } }],
    ["hex in upper case", hex.toUpperCase(), { scheme: { header: name, signatureEncodings: ["hex"] } }],
    ["hex beside base64", ` ${hex} `, { scheme: { header: name, signatureEncodings: ["base64", "hex"] } }],
    ["base64 beside hex", right, { scheme: { header: name, signatureEncodings: ["hex", "base64"] } }],
  ] as const)("takes %s", async (_name, line, options) => {
    expect(await run(webhookHmac({ secret, ...options }), requestOf([line], body))).toBeUndefined();
  });

  test.each([
    ["base64 where only hex is allowed", right, "malformed"],
    ["hex with a prefix", `0x${hex}`, "malformed"],
    ["hex of 31 bytes", hex.slice(2), "malformed"],
    ["hex with one digit off", hex.replace(/.$/, "f"), "wrong"],
  ])("refuses %s", async (_name, line, reason) => {
    const guard = webhookHmac({ secret, scheme: { header: name, signatureEncodings: ["hex"] } });
    expect(codeOf(await run(guard, requestOf([line], body)))).toBe(`payload-signature-${reason}`);
  });

  test("takes the signature from the field that is configured", async () => {
    const guard = webhookHmac({ secret, scheme: { header: "X-Signature" } });
    expect(codeOf(await run(guard, requestOf([right], body)))).toBe("payload-signature-missing");
    const req = requestOf([], body);
    req.rawHeaders.push("x-SIGNATURE", right);
    expect(await run(guard, req)).toBeUndefined();
  });

  test.each(["base64", "hex"] as const)("decodes a secret in %s", async (secretEncoding) => {
    const encoded = Buffer.from(secret).toString(secretEncoding);
    const decoding = webhookHmac({ secret: encoded, scheme: { header: name, secretEncoding } });
    expect(await run(decoding, requestOf([right], body))).toBeUndefined();
    const asText = webhookHmac({ secret: encoded });
    expect(codeOf(await run(asText, requestOf([right], body)))).toBe("payload-signature-wrong");
  });

  test("tries every secret, and says which", async () => {
    const secrets = ["test-secret-3", "test-secret-2", secret];
    for (const [index, one] of secrets.entries()) {
      for (const source of [secrets, () => secrets, () => Promise.resolve(secrets)]) {
        const req = requestOf([signPayload(body, one)], body);
        expect(await run(webhookHmac({ secrets: source }), req)).toBeUndefined();
        expect(req.webhook).toEqual({ secretIndex: index });
        expect(verifiedPayload(req)).toEqual({ bytes: body, secretIndex: index });
      }
    }
    const stranger = requestOf([signPayload(body, "test-secret-4")], body);
    expect(codeOf(await run(webhookHmac({ secrets }), stranger))).toBe("payload-signature-wrong");
  });

  test("is not moved by a later change of the options", async () => {
    const secrets = [secret];
    const guard = webhookHmac({ secrets });
    secrets[0] = "other";
    expect(await run(guard, requestOf([right], body))).toBeUndefined();
  });

  test("keeps what an earlier guard put on req.webhook", async () => {
    const req = requestOf([right], body);
    req.webhook = {};
    Object.assign(req.webhook, { credentialIndex: 1 });
    await run(webhookHmac({ secret }), req);
    expect(req.webhook).toEqual({ credentialIndex: 1, secretIndex: 0 });
  });

  test("forgets the verdict of an earlier guard when a later one refuses", async () => {
    const req = requestOf([right], body);
    await run(webhookHmac({ secret }), req);
    expect(verifiedPayload(req)).toBeDefined();
    await run(webhookHmac({ secret: "other" }), req);
    expect(verifiedPayload(req)).toBeUndefined();
  });

  test("believes nothing that stands on the request", async () => {
    const req = requestOf([right], Buffer.from("other"));
    req.rawBody = body;
    req.webhook = { secretIndex: 0 };
    expect(codeOf(await run(webhookHmac({ secret }), req))).toBe("payload-signature-wrong");
    expect(verifiedPayload(req)).toBeUndefined();
  });

  test("passes with secrets that are there at once", async () => {
    for (const secrets of [[secret], () => [secret]]) {
      const req = requestOf([right], body);
      await run(rawBody(), req);
      expect(await run(webhookHmac({ secrets }), req)).toBeUndefined();
    }
  });

  test("asks no secrets function about a request without a usable signature", async () => {
    const secrets = jest.fn(() => [secret]);
    expect(codeOf(await run(webhookHmac({ secrets }), requestOf([], body)))).toBe(
      "payload-signature-missing",
    );
    expect(codeOf(await run(webhookHmac({ secrets }), requestOf(["x"], body)))).toBe(
      "payload-signature-malformed",
    );
    expect(secrets).not.toHaveBeenCalled();
  });

  test.each<[string, () => unknown]>([
    ["throws", () => JSON.parse("{")],
    ["rejects", () => Promise.reject(new Error("no database"))],
    ["gives nothing", () => undefined],
    ["gives null", () => null],
    ["gives a promise of null", async () => null],
    ["gives an empty list", () => []],
    ["gives a promise of an empty list", () => Promise.resolve([])],
    ["gives one text", () => secret],
    ["gives an empty secret", () => [""]],
    ["gives a missing secret", () => [secret, undefined]],
    ["gives a promise of an empty secret", () => Promise.resolve([secret, ""])],
    ["does not answer", () => new Promise(() => undefined)],
  ])("answers 503 when the secrets function %s", async (_name, secrets) => {
    const guard = webhookHmac({ secrets: secrets as SecretsFunction, timeoutMs: 20, status: 404 });
    const error = await run(guard, requestOf([right], body));
    expect(error).toMatchObject({ status: 503, code: "secrets-unavailable", cause: expect.any(Error) });
    expect(String((error as Error).cause)).not.toContain(secret);
  });

  test("refuses with another status", async () => {
    const guard = webhookHmac({ secret, status: 404 });
    expect(await run(guard, requestOf([], body))).toMatchObject({
      status: 404,
      code: "payload-signature-missing",
    });
    expect(await run(guard, requestOf([right], Buffer.from("x")))).toMatchObject({
      status: 404,
      code: "payload-signature-wrong",
    });
  });
});
