import { describe, expect, test } from "@jest/globals";
import { signPayload, signPayloadHeaders } from "@countersign/webhook-hmac";
import { explainRequest } from "../src/explain-request.ts";
import type { Explainers } from "../src/options.ts";
import type { RecordedRequest } from "../src/recorded-request.ts";

const at = Date.UTC(2026, 0, 1);
const body = Buffer.from('{"event":"paid"}');

function refusedByHmac(headers: Readonly<Record<string, string>>): RecordedRequest {
  const facts = { label: undefined, keyid: undefined, subject: undefined, created: undefined };
  const others = { ageSeconds: undefined, components: undefined, idempotencyKey: undefined };
  const code = "payload-signature-wrong";
  return {
    id: 1,
    at,
    startedAtMs: 0,
    method: "POST",
    target: "/hooks",
    rawHeaders: Object.entries(headers).flat(),
    scheme: "https",
    clientAddress: "127.0.0.1",
    peer: "127.0.0.1",
    body,
    bodyBytes: body.length,
    verdicts: [
      {
        ...facts,
        ...others,
        id: "0727b01c-bbad-4c9e-a1f7-595627710ba4",
        guard: "webhookHmac",
        outcome: "reject",
        code,
        status: 401,
        durationMs: 1,
        storeMs: undefined,
        at,
        message: "webhookHmac: it does not fit",
        docs: undefined,
      },
    ],
    life: [],
    faults: [],
    outcome: "reject",
    status: 401,
    durationMs: 1,
  };
}

const nothing: Explainers = {
  signature: undefined,
  hmac: undefined,
  basicAuth: undefined,
  addresses: undefined,
};

describe("explainRequest of a wrong HMAC", () => {
  const other = "of-somebody-else";
  test.each([
    ["of one field", undefined, { "X-Payload-Signature": signPayload(body, other) }],
    ["of a scheme without a timestamp", "github", signPayloadHeaders(body, other, { scheme: "github" })],
    [
      "of a scheme with a timestamp, as of when it came",
      "stripe",
      signPayloadHeaders(body, other, { scheme: "stripe", timestampSeconds: at / 1000 }),
    ],
  ] as const)("says what to do %s", async (_name, scheme, headers) => {
    const hmac = { secrets: ["seeded-secret"], scheme };
    const { explanations } = await explainRequest(refusedByHmac({ ...headers }), { ...nothing, hmac });
    expect(explanations).toMatchObject([{ guard: "webhookHmac", what: "hmac-wrong-secret" }]);
  });
});
