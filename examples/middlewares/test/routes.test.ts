// Every rejection of the two routes by its status and code, and that no middleware can be taken out unnoticed.
import { randomUUID } from "node:crypto";
import path from "node:path";
import { testFolder } from "@countersign/test-support/runs/after-test.ts";
import { expressVersionsWith } from "@countersign/test-support/runs/express-versions.ts";
import { sha256Field } from "@countersign/test-support/signers/independent-signer.ts";
import { strangerKey } from "@countersign/test-support/signers/test-keys.ts";
import type { NonceStore } from "@countersign/http-signature-verify";
import { describe, expect, test } from "@jest/globals";
import express4 from "express4";
import {
  instruction,
  keyid,
  payout,
  platformOn,
  send,
  sha512Field,
  takeOut,
  webhook,
  webhookPath,
  type Answer,
  type Sent,
} from "./platform.ts";

const versions = expressVersionsWith(express4);
const nowSeconds = (): number => Math.floor(Date.now() / 1000);
const changed = (change: object): { body: string } => ({
  body: JSON.stringify({ ...instruction, ...change }),
});
const body = JSON.stringify(instruction);

type Rejection = readonly [name: string, sent: () => Sent, status: number, code: string];

const ofPayouts: readonly Rejection[] = [
  ["another address", () => payout({}, { "X-Forwarded-For": "192.0.2.11" }), 401, "ip-not-allowed"],
  [
    "no signature",
    () => payout({}, { Signature: undefined, "Signature-Input": undefined }),
    401,
    "signature-missing",
  ],
  ["no Signature-Input", () => payout({}, { "Signature-Input": undefined }), 401, "signature-missing"],
  [
    "a Signature-Input that cannot be read",
    () => payout({}, { "Signature-Input": "sig1=(" }),
    401,
    "field-invalid",
  ],
  ["the signature of another key", () => payout({ key: strangerKey }), 401, "signature-mismatch"],
  ["an unknown keyid", () => payout({ keyid: "service-2" }), 401, "key-unknown"],
  ["an expired signature", () => payout({ created: nowSeconds() - 61 }), 401, "signature-expired"],
  ["a signature of the future", () => payout({ created: nowSeconds() + 60 }), 401, "created-in-future"],
  ["a signature that lives too long", () => payout({ lifetime: 61 }), 401, "window-too-long"],
  ["a signature without nonce", () => payout({ parameters: { nonce: undefined } }), 401, "nonce-invalid"],
  [
    "a signature of another algorithm",
    () => payout({ parameters: { alg: '"rsa-pss-sha512"' } }),
    401,
    "alg-mismatch",
  ],
  [
    "a signature for another path",
    () => ({ ...payout({ path: "/other" }), path: "/api/v1/transaction" }),
    401,
    "signature-mismatch",
  ],
  [
    "a signature that does not cover the body",
    () =>
      payout({
        covered: [
          ['"@method"', "POST"],
          ['"@path"', "/api/v1/transaction"],
          ['"content-type"', "application/json"],
        ],
      }),
    401,
    "component-required",
  ],
  [
    "a body that was changed",
    () => ({ ...payout(), body: body.replace("10.00", "99.00") }),
    401,
    "content-digest-mismatch",
  ],
  [
    "a signed digest of another body",
    () => payout({ contentDigest: sha256Field(Buffer.from("{}")) }),
    401,
    "content-digest-mismatch",
  ],
  ["no digest", () => payout({}, { "Content-Digest": undefined }), 401, "content-digest-missing"],
  [
    "a digest that cannot be read",
    () => payout({ contentDigest: "sha-256=abc" }),
    401,
    "content-digest-invalid",
  ],
  [
    "a digest by SHA-512 alone",
    () => payout({ contentDigest: sha512Field(body) }),
    401,
    "content-digest-unsupported",
  ],
  [
    "no idempotency key",
    () => payout(changed({ idempotency_key: undefined })),
    400,
    "idempotency-key-missing",
  ],
  [
    "an idempotency key of two parts",
    () => payout(changed({ idempotency_key: "payout-1.business-1" })),
    400,
    "idempotency-key-malformed",
  ],
  [
    "an idempotency key of 513 characters",
    () => payout(changed({ idempotency_key: `a.b.${"c".repeat(509)}` })),
    400,
    "idempotency-key-invalid",
  ],
  [
    "a business that is not known",
    () => payout(changed({ business_id: "business-2" })),
    400,
    "business-unknown",
  ],
  [
    "an account of another business",
    () => payout(changed({ beneficiary: { iban: "GB82WEST12345698765432" } })),
    400,
    "business-unknown",
  ],
  ["an amount of nothing", () => payout(changed({ amount: { value: "0.00" } })), 400, "amount-invalid"],
  ["an amount below nothing", () => payout(changed({ amount: { value: -5 } })), 400, "amount-invalid"],
  ["a body that is no JSON", () => payout({ body: '{"idempotency_key":' }), 400, "json-invalid"],
  [
    "JSON with a member twice",
    () => payout({ body: body.replace("{", '{"business_id":"business-2",') }),
    400,
    "json-duplicate-key",
  ],
  [
    "JSON that is nested too deep",
    () => payout(changed({ extra: [[[[[[[[[]]]]]]]]] })),
    400,
    "json-too-deep",
  ],
  [
    "a body of more than 64 kB",
    () => payout(changed({ reference: "x".repeat(65_536) })),
    413,
    "body-too-large",
  ],
  ["another media type", () => payout({ contentType: "text/plain" }), 415, "media-type-unsupported"],
  [
    "a compressed body",
    () => payout({}, { "Content-Encoding": "gzip" }),
    415,
    "content-encoding-unsupported",
  ],
];

const ofWebhooks: readonly Rejection[] = [
  ["plain http", () => webhook({ "X-Forwarded-Proto": "http" }), 404, "https-required"],
  ["no credentials", () => webhook({ Authorization: undefined }), 404, "credentials-missing"],
  [
    "a wrong password",
    () => webhook({ Authorization: `Basic ${Buffer.from("service:wrong").toString("base64")}` }),
    404,
    "credentials-wrong",
  ],
  ["no HMAC", () => webhook({ "X-Payload-Signature": undefined }), 404, "payload-signature-missing"],
  [
    "an HMAC by another secret",
    () => webhook({}, undefined, "another-secret-of-tests"),
    404,
    "payload-signature-wrong",
  ],
  [
    "a body that was changed",
    () => ({ ...webhook(), body: '{"events":[]}' }),
    404,
    "payload-signature-wrong",
  ],
  ["a body that is no JSON", () => webhook({}, "{"), 404, "json-invalid"],
  ["a body that is no envelope", () => webhook({}, "{}"), 404, "envelope-invalid"],
  ["another media type", () => webhook({ "Content-Type": "text/plain" }), 404, "media-type-unsupported"],
  ["a body of more than 1 MB", () => webhook({}, " ".repeat(1_048_577)), 404, "body-too-large"],
  ["another method", () => ({ ...webhook(), method: "options" }), 404, "method-not-allowed"],
];

describe.each(versions)("the payout route on %s", (_version, framework) => {
  test("acknowledges a signed payout and pays it once: 200, then 409", async () => {
    const { app, payouts, database } = platformOn(framework);
    const paid = await send(app, payout());
    expect(paid).toMatchObject({ status: 200, code: undefined, text: '{"status":"acknowledged"}' });
    const again = await send(app, payout());
    expect([again.status, again.code]).toEqual([409, "already-processed"]);
    expect(payouts()).toEqual([instruction.idempotency_key]);
    const columns = "SELECT keyid, business, iban, amount FROM payouts";
    expect(database.prepare(columns).raw().all()).toEqual([
      [keyid, "business-1", "DE89370400440532013000", "10.00"],
    ]);
  });

  test.each(ofPayouts)("rejects %s, and pays nothing", async (_name, sent, status, code) => {
    const { app, payouts } = platformOn(framework);
    expect(await send(app, sent())).toMatchObject({ status, code });
    expect(payouts()).toEqual([]);
    // What was refused has used up neither the key nor the nonce of the genuine payout.
    expect((await send(app, payout())).status).toBe(200);
  });

  test("gives every 401 the same fields and body", async () => {
    const { app } = platformOn(framework);
    const looks = new Set<string>();
    for (const [, sent, status] of ofPayouts) {
      if (status !== 401) continue;
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      const { fields, text } = await send(app, sent());
      const shown = Object.entries(fields).filter(([name]) => name !== "date");
      looks.add(JSON.stringify([shown, text]));
    }
    expect([...looks]).toEqual([expect.stringContaining("application/problem+json")]);
  });

  test("rejects a nonce that was used before, also by another process on the same database", async () => {
    const file = path.join(testFolder(), "platform.db");
    const { app, payouts } = platformOn(framework, {}, file);
    const sent = payout({ nonce: "nonce-1" });
    expect((await send(app, sent)).status).toBe(200);
    expect(await send(app, sent)).toMatchObject({ status: 401, code: "nonce-replayed" });
    const other = platformOn(framework, {}, file);
    expect(await send(other.app, sent)).toMatchObject({ status: 401, code: "nonce-replayed" });
    expect(payouts()).toHaveLength(1);
  });

  test("rejects a paid key that comes with another payload", async () => {
    const { app, payouts } = platformOn(framework);
    expect((await send(app, payout())).status).toBe(200);
    const other = payout(changed({ amount: { value: "99.00" } }));
    expect(await send(app, other)).toMatchObject({ status: 409, code: "idempotency-key-reused" });
    expect(payouts()).toHaveLength(1);
  });

  test("pays one of two requests that come at the same time with one key", async () => {
    const { app, payouts } = platformOn(framework);
    const answers = await Promise.all([payout(), payout()].map(async (sent) => send(app, sent)));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200, 409]));
    expect(payouts()).toHaveLength(1);
  });

  test("answers 503 with Retry-After while another process has the key, and pays afterwards", async () => {
    const { app, payouts, parts } = platformOn(framework);
    const key = `payout:${instruction.idempotency_key}`;
    const token = randomUUID();
    const store = parts.stores.idempotency;
    store.claim(key, { token, fingerprint: "another", leaseMs: 30_000, recovery: "hold" });
    const busy = await send(app, payout());
    expect(busy).toMatchObject({ status: 503, code: "in-flight" });
    expect(Number(busy.fields["retry-after"])).toBeGreaterThan(0);
    store.release(key, token);
    expect((await send(app, payout())).status).toBe(200);
    expect(payouts()).toHaveLength(1);
  });

  test("answers 503 while the key store fails, and 401 once a key is deleted", async () => {
    const { app, database } = platformOn(framework);
    const refusal = async (): Promise<unknown> => {
      const { status, code } = await send(app, payout());
      return [status, code];
    };
    database.exec("UPDATE keys SET public_key = 'no key'");
    expect(await refusal()).toEqual([503, "key-store-unavailable"]);
    database.exec("DELETE FROM keys");
    expect(await refusal()).toEqual([401, "key-unknown"]);
    database.exec("DROP TABLE keys");
    expect(await refusal()).toEqual([503, "key-store-unavailable"]);
  });

  test("answers 503 while the nonce store fails, and pays nothing", async () => {
    const { app, database, payouts } = platformOn(framework);
    database.exec("DROP TABLE nonces");
    expect(await send(app, payout())).toMatchObject({ status: 503, code: "nonce-store-unavailable" });
    expect(payouts()).toEqual([]);
  });

  test("takes another nonce store in the place of its own", async () => {
    const claims: unknown[] = [];
    const nonces: NonceStore = {
      claim(claim) {
        claims.push(claim);
        return "seen";
      },
    };
    const { app } = platformOn(framework, { nonces });
    expect(await send(app, payout({ nonce: "n-1" }))).toMatchObject({ status: 401, code: "nonce-replayed" });
    expect(claims).toMatchObject([{ scope: keyid, nonce: "n-1" }]);
  });

  test("knows no other method", async () => {
    const { app } = platformOn(framework);
    expect((await send(app, { ...payout(), method: "get" })).status).toBe(404);
    const stranger = payout({}, { "X-Forwarded-For": "192.0.2.11" });
    expect((await send(app, { ...stranger, method: "get" })).status).toBe(401);
  });
});

describe.each(versions)("the webhook route on %s", (_version, framework) => {
  test("handles an event once, however often it comes", async () => {
    const { app, events } = platformOn(framework);
    expect(await send(app, webhook())).toMatchObject({ status: 200, code: undefined, text: "" });
    expect((await send(app, webhook())).status).toBe(200);
    expect(events()).toEqual(["ev-1"]);
  });

  test.each(ofWebhooks)("rejects %s like an unknown path", async (_name, sent, status, code) => {
    const { app, events } = platformOn(framework);
    const refused = await send(app, sent());
    expect(refused).toMatchObject({ status, code });
    const nowhere = { ...sent(), path: "/".padEnd(webhookPath.length, "0") };
    const unknown = await send(app, nowhere);
    const look = ({ fields, text }: Answer): unknown => [
      { ...fields, date: undefined },
      text.replaceAll(/\/(webhooks\/)?[0-9a-f]+/g, "/"),
    ];
    expect(look(refused)).toEqual(look(unknown));
    expect(events()).toEqual([]);
  });

  test("answers an error for an event that could not be recorded, and handles it when it comes again", async () => {
    const { app, database, events } = platformOn(framework);
    database.exec("ALTER TABLE events RENAME TO elsewhere");
    expect((await send(app, webhook())).status).toBe(404);
    database.exec("ALTER TABLE elsewhere RENAME TO events");
    expect((await send(app, webhook())).status).toBe(200);
    expect(events()).toEqual(["ev-1"]);
  });
});

// Each of them does something that no other one does: without it, a request is answered differently.
const needed: readonly (readonly [
  middleware: string,
  what: string,
  sent: () => Sent,
  whole: number,
  without: number | undefined,
])[] = [
  ["ipAllowlist", "another address", () => payout({}, { "X-Forwarded-For": "192.0.2.11" }), 401, 200],
  ["rawBody", "a body of 65 kB", () => payout(changed({ reference: "x".repeat(66_000) })), 413, 200],
  [
    "contentDigest",
    "a digest by SHA-512 alone",
    () => payout({ contentDigest: sha512Field(body) }),
    401,
    200,
  ],
  ["httpSignatureVerify", "the signature of another key", () => payout({ key: strangerKey }), 401, 500],
  [
    "jsonBody",
    "JSON that is nested too deep",
    () => payout(changed({ extra: [[[[[[[[[]]]]]]]]] })),
    400,
    undefined,
  ],
  ["idempotencyGuard", "a good payout", () => payout(), 200, 404],
  ["httpsOnly", "a webhook by http", () => webhook({ "X-Forwarded-Proto": "http" }), 404, 200],
  ["webhookBasicAuth", "no credentials", () => webhook({ Authorization: undefined }), 404, 200],
  ["webhookHmac", "a good webhook", () => webhook(), 200, 404],
  ["receiveWebhook", "a good webhook", () => webhook(), 200, 404],
];

describe.each(versions)("on %s without one of the middlewares", (_version, framework) => {
  test.each(needed)("%s: %s is answered differently", async (middleware, _what, sent, whole, without) => {
    expect((await send(platformOn(framework).app, sent())).status).toBe(whole);
    const { app } = platformOn(framework);
    expect(takeOut(app, middleware)).toBe(true);
    const { status } = await send(app, sent());
    expect(status).not.toBe(whole);
    if (without !== undefined) expect(status).toBe(without);
  });

  test("guardErrors: a refusal is no longer hidden, and then shows its reason", async () => {
    const { app } = platformOn(framework);
    const refused = webhook({ Authorization: undefined });
    expect((await send(app, refused)).status).toBe(404);
    takeOut(app, "guardErrors");
    expect((await send(app, refused)).status).toBe(401);
    takeOut(app, "guardErrors");
    const { status, text } = await send(app, payout({ key: strangerKey }));
    expect([status, text]).toEqual([401, expect.stringContaining("GuardError")]);
  });
});
