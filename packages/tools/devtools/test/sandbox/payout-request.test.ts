import { createHash, createPublicKey, verify } from "node:crypto";
import { describe, expect, test } from "@jest/globals";
import {
  buildPayoutRequest,
  generateKeyPair,
  createPayoutInstruction,
  sampleBusiness,
} from "../../src/sandbox/index.ts";

type PayoutRequestOptions = Parameters<typeof buildPayoutRequest>[0];

const pair = generateKeyPair({ keyid: "test-key" });
const fixed: PayoutRequestOptions = {
  url: "http://127.0.0.1:3000/api/v1/transaction",
  bodyText: '{"idempotency_key":"op.a.b","amount":{"value":"10.00"}}',
  privateKey: pair.privateKeyPem,
  keyid: pair.keyid,
  created: 1_700_000_000,
  nonce: "0b4d9a7e-0000-4000-8000-000000000001",
};

function digestOf(bytes: Uint8Array): string {
  return `sha-256=:${createHash("sha256").update(bytes).digest("base64")}:`;
}

function signatureFits(base: string, field: string | undefined): boolean {
  const base64 = /^sig1=:(.*):$/.exec(field ?? "")?.[1] ?? "";
  return verify(null, Buffer.from(base), createPublicKey(pair.publicKeyPem), Buffer.from(base64, "base64"));
}

function sentText(options: Partial<PayoutRequestOptions>): string {
  return buildPayoutRequest({ ...fixed, bodyText: undefined, ...options }).bodyBytes.toString("latin1");
}

describe("buildPayoutRequest", () => {
  test("signs the components and parameters of the contract, in its order", () => {
    const { headers, signature, bodyBytes, target, method } = buildPayoutRequest(fixed);
    const params =
      '("@method" "@path" "content-type" "content-digest");created=1700000000;expires=1700000060' +
      ';keyid="test-key";alg="ed25519";nonce="0b4d9a7e-0000-4000-8000-000000000001"';
    const base = [
      '"@method": POST',
      '"@path": /api/v1/transaction',
      '"content-type": application/json',
      `"content-digest": ${digestOf(bodyBytes)}`,
      `"@signature-params": ${params}`,
    ].join("\n");
    expect({ method, target }).toEqual({ method: "POST", target: "/api/v1/transaction" });
    expect(headers).toEqual({
      "Content-Type": "application/json",
      "Content-Digest": digestOf(Buffer.from(String(fixed.bodyText))),
      "Signature-Input": `sig1=${params}`,
      Signature: expect.stringMatching(/^sig1=:[A-Za-z0-9+/]{86}==:$/),
    });
    expect(signature.signatureBase).toBe(base);
    expect(signatureFits(base, headers["Signature"])).toBe(true);
  });

  test("takes a fresh nonce, the present and 60 seconds by default", () => {
    const before = Math.floor(Date.now() / 1000);
    const options = { ...fixed, created: undefined, nonce: undefined };
    const [one, two] = [buildPayoutRequest(options).signature, buildPayoutRequest(options).signature];
    expect(one.nonce).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/);
    expect(one.nonce).not.toBe(two.nonce);
    expect(one.created).toBeGreaterThanOrEqual(before);
    expect(one.expires - one.created).toBe(60);
  });

  test("serialises a body and sends text and bytes as they are", () => {
    expect(sentText({ body: { a: 1 } })).toBe('{"a":1}');
    expect(sentText({ bodyText: ' {"a":\r\n1}' })).toBe(' {"a":\r\n1}');
    expect(sentText({ bodyText: Uint8Array.from([0xef, 0xbb, 0xbf, 0xff]) })).toBe(
      "\u00EF\u00BB\u00BF\u00FF",
    );
  });

  test("covers other components under another label", () => {
    const { headers, signature } = buildPayoutRequest({
      ...fixed,
      url: "https://Platform.example:443/pay?x=1",
      components: ["@method", "@authority", "@path", "@query"],
      label: "service",
    });
    expect(headers["Signature-Input"]).toMatch(/^service=\("@method" "@authority" "@path" "@query"\);/);
    expect(signature.signatureBase).toContain(
      '"@authority": platform.example\n"@path": /pay\n"@query": ?x=1\n',
    );
  });

  test("signs given header fields in place of the computed ones, in any spelling", () => {
    const { headers, signature } = buildPayoutRequest({
      ...fixed,
      headers: { "content-TYPE": "text/plain", "X-Forwarded-For": "192.0.2.1" },
    });
    expect(Object.keys(headers).filter((name) => name.toLowerCase() === "content-type")).toEqual([
      "Content-Type",
    ]);
    expect(headers["X-Forwarded-For"]).toBe("192.0.2.1");
    expect(signature.signatureBase).toContain('"content-type": text/plain\n');
  });

  test("sends another target than the signed one when told to", () => {
    const { target, signature } = buildPayoutRequest({ ...fixed, target: "/API/v1/transaction" });
    expect(target).toBe("/API/v1/transaction");
    expect(signature.signatureBase).toContain('"@path": /api/v1/transaction\n');
  });

  describe("tamper", () => {
    const good = buildPayoutRequest(fixed);

    test("body changes one byte of the body and nothing else", () => {
      const bad = buildPayoutRequest({ ...fixed, tamper: "body" });
      const changed = [...bad.bodyBytes].filter((byte, index) => byte !== good.bodyBytes[index]);
      expect(changed).toHaveLength(1);
      expect(bad.bodyBytes).toHaveLength(good.bodyBytes.length);
      expect(JSON.parse(bad.bodyBytes.toString())).toEqual({
        idempotency_key: "op.a.b",
        amount: { value: "10.01" },
      });
      expect(bad.headers).toEqual(good.headers);
    });

    test("body adds a space where there is no digit to change", () => {
      const bad = buildPayoutRequest({ ...fixed, bodyText: '{"nine":9}', tamper: "body" });
      expect(bad.bodyBytes.toString()).toBe('{"nine":9} ');
    });

    test.each([
      ["path", "http://h/pay", "/pay", "/pay/other"],
      ["path", "http://h/pay/?q=1", "/pay/?q=1", "/pay/other"],
      ["prefix-removed", "http://h/pay?q=1", "/pay?q=1", "/payments/pay"],
      ["prefix-added", "http://h/api/v1/pay?q=1", "/api/v1/pay?q=1", "/v1/pay"],
      ["prefix-added", "http://h/pay", "/pay", "/"],
    ] as const)("%s signs %s for another path than it is sent to", (tamper, url, target, signedPath) => {
      const bad = buildPayoutRequest({ ...fixed, url, tamper });
      expect(bad.target).toBe(target);
      expect(bad.signature.signatureBase).toContain(`"@path": ${signedPath}\n`);
      expect(signatureFits(bad.signature.signatureBase, bad.headers["Signature"])).toBe(true);
    });

    test("charset-added changes the sent Content-Type alone", () => {
      const bad = buildPayoutRequest({ ...fixed, tamper: "charset-added" });
      expect(bad).toEqual({
        ...good,
        headers: { ...good.headers, "Content-Type": "application/json; charset=utf-8" },
      });
    });

    test.each([
      ["compact JSON", '{"a":1.5}', '{\n  "a": 1.5\n}'],
      ["indented JSON", '{\n  "a": 1.50 }', '{"a":1.5}'],
      ["JSON without white space to add", "{}", "{}\n"],
    ])("body-re-serialised sends %s as other bytes than were signed", (_name, bodyText, sent) => {
      const bad = buildPayoutRequest({ ...fixed, bodyText, tamper: "body-re-serialised" });
      expect(bad.bodyBytes.toString()).toBe(sent);
      expect(bad.headers).toEqual(buildPayoutRequest({ ...fixed, bodyText }).headers);
    });

    test("created-milliseconds signs both times in milliseconds", () => {
      const bad = buildPayoutRequest({ ...fixed, tamper: "created-milliseconds" });
      const { created, expires } = good.signature;
      expect(bad.signature).toMatchObject({ created: created * 1000, expires: expires * 1000 });
      expect(bad.headers["Signature-Input"]).toContain(`;created=${created * 1000};`);
    });
  });

  test("forwardedFor sends what a proxy says, unless headers say otherwise", () => {
    const { headers } = buildPayoutRequest({
      ...fixed,
      forwardedFor: "192.0.2.10",
      headers: { "x-forwarded-proto": "http" },
    });
    expect(headers).toMatchObject({ "X-Forwarded-For": "192.0.2.10", "X-Forwarded-Proto": "http" });
    expect(Object.keys(buildPayoutRequest(fixed).headers)).not.toContain("X-Forwarded-For");
  });

  test.each<[string, Partial<PayoutRequestOptions>]>([
    ["no URL", { url: "pay" }],
    ["credentials in the URL", { url: "http://user:pass@h/pay" }],
    ["a fragment", { url: "http://h/pay#x" }],
    ["a backslash in the host", { url: "http://h\\x/pay" }],
    ["a space in the path", { url: "http://h/p ay" }],
    ["a path that is not ASCII", { url: "http://h/zahlung/ä" }],
    ["a line feed in the target", { target: "/pay\nX: y" }],
    ["no body", { bodyText: undefined }],
    ["two bodies", { body: {} }],
    ["a line feed in a header", { headers: { "X-A": "a\r\nX-B: b" } }],
    ["a given signature", { headers: { signature: "sig1=::" } }],
    ["an unknown part to tamper with", { tamper: "time" as "body" }],
    ["a path without a prefix to leave out", { url: "http://h/", tamper: "prefix-added" }],
    ["no JSON to serialise again", { bodyText: "{", tamper: "body-re-serialised" }],
    ["a proxy that names no address", { forwardedFor: "platform.example" }],
    ["a misspelt option", { keyId: "x" } as Partial<PayoutRequestOptions>],
  ])("refuses %s with a TypeError", (_name, changes) => {
    expect(() => buildPayoutRequest({ ...fixed, ...changes })).toThrow(
      expect.objectContaining({ name: "TypeError" }),
    );
  });

  test("leaves to the signature engine what cannot be signed", () => {
    expect(() => buildPayoutRequest({ ...fixed, url: "http://h/a/../pay" })).toThrow(
      expect.objectContaining({ code: "target-invalid" }),
    );
  });
});

// ISO 13616: the first four characters go to the end, letters count from 10, the number is 1 modulo 97.
function ibanRemainder(iban: string): number {
  const digits = `${iban.slice(4)}${iban.slice(0, 4)}`.replace(/[A-Z]/g, (letter) =>
    String(letter.charCodeAt(0) - 55),
  );
  return Array.from(digits).reduce((remainder, digit) => (remainder * 10 + Number(digit)) % 97, 0);
}

describe("createPayoutInstruction", () => {
  test("fills every field with a valid sample", () => {
    const instruction = createPayoutInstruction();
    expect(instruction).toEqual({
      idempotency_key: expect.stringMatching(/^[^.]+\.[^.]+\.[^.]+$/),
      business_id: sampleBusiness.businessId,
      beneficiary: { iban: sampleBusiness.iban, bic: sampleBusiness.bic, name: sampleBusiness.name },
      amount: { value: "10.00", currency: "EUR" },
      reference: expect.stringMatching(/./),
    });
    expect(ibanRemainder(instruction.beneficiary.iban)).toBe(1);
    expect(instruction.beneficiary.bic).toMatch(/^[A-Z]{6}[A-Z0-9]{2}(?:[A-Z0-9]{3})?$/);
  });

  test("has a fresh idempotency key each time", () => {
    expect(createPayoutInstruction().idempotency_key).not.toBe(createPayoutInstruction().idempotency_key);
  });

  test("takes every value from its caller", () => {
    const instruction = createPayoutInstruction({
      idempotencyKey: "a.b.c",
      businessId: "b-7",
      iban: "NL91ABNA0417164300",
      bic: "ABNANL2A",
      name: "Seven B.V.",
      amount: { minor: 1 },
      reference: "Order 7",
      referenceField: "remittance",
    });
    expect(instruction).toEqual({
      idempotency_key: "a.b.c",
      business_id: "b-7",
      beneficiary: { iban: "NL91ABNA0417164300", bic: "ABNANL2A", name: "Seven B.V." },
      amount: { minor: 1 },
      remittance: "Order 7",
    });
  });
});
