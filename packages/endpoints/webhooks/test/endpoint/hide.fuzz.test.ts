import type { Server } from "node:http";
import { afterAll, beforeAll, describe, expect, jest, test } from "@jest/globals";
import * as fc from "fast-check";
import { close, listen } from "@countersign/test-support/servers/http-client.ts";
import { exchange, rawRequest } from "@countersign/test-support/servers/wire.ts";
import {
  delivery,
  envelope,
  handlerOf,
  optionsWith,
  path,
  siteOf,
  success,
  expressVersions,
} from "./endpoint.ts";
import { fuzzRuns } from "@countersign/test-support/runs/fuzz-runs.ts";

const genuine = Buffer.from(envelope("ev_1", "ev_2"));

/** A genuine body in which some bytes are others. */
const altered = fc
  .array(fc.tuple(fc.nat(genuine.length - 1), fc.nat(255)), { minLength: 1, maxLength: 4 })
  .map((changes) => {
    const bytes = Buffer.from(genuine);
    for (const [position, value] of changes) bytes[position] = value;
    return bytes;
  });
const cut = fc.nat(genuine.length).map((length) => genuine.subarray(0, length));
const anyJson = fc.json().map((text) => Buffer.from(text));
const anyBytes = fc.uint8Array({ maxLength: 1500 }).map((bytes) => Buffer.from(bytes));
const anyEnvelope = fc
  .record(
    {
      webhook_id: fc.oneof(fc.string(), fc.constant("wh_1")),
      timestamp: fc.oneof(fc.string(), fc.constant("2024-01-02T03:04:05.1Z")),
      events: fc.array(
        fc.record(
          {
            event_id: fc.oneof(fc.string(), fc.constantFrom("__proto__", "ev_1")),
            timestamp: fc.constantFrom("2024-01-02T03:04:05Z", "2024-13-02T03:04:05Z", ""),
            type: fc.constantFrom(
              "buyer.status_changed",
              "payment_request.repayment.reminder",
              "new.type",
              "",
            ),
            data: fc.jsonValue(),
          },
          { requiredKeys: [] },
        ),
        { maxLength: 4 },
      ),
    },
    { requiredKeys: [] },
  )
  .map((value) => Buffer.from(JSON.stringify(value)));

describe.each(expressVersions)("webhookEndpoint hidden on %s", (_version, factory) => {
  let endpoint: { readonly server: Server; readonly port: number };
  let unknown: string;

  beforeAll(async () => {
    // One event_id comes with many contents here.
    jest.spyOn(process, "emitWarning").mockImplementation(() => undefined);
    // Data of unknown types comes to the handler unchecked.
    const handler = handlerOf((event) => JSON.stringify(event.data));
    endpoint = await listen(siteOf({ factory }, optionsWith({ handler, onReject: () => undefined })));
    const without = await listen(siteOf({ factory }));
    unknown = await exchange(without.port, rawRequest("POST", path));
    await close(without.server);
  });

  afterAll(async () => {
    jest.restoreAllMocks();
    await close(endpoint.server);
  });

  test("answers any authenticated bytes with success or as an unknown route", async () => {
    const statuses = new Set<string>();
    const body = fc.oneof(altered, cut, anyJson, anyBytes, anyEnvelope);
    await fc.assert(
      fc.asyncProperty(body, fc.boolean(), async (bytes, chunked) => {
        const request = delivery({ body: bytes, chunked: chunked && bytes.length > 0 });
        const answer = await exchange(endpoint.port, request);
        statuses.add(answer.slice(9, 12));
        expect([success, unknown]).toContain(answer);
      }),
      // Both answers are seen, whatever else comes.
      {
        ...fuzzRuns(400),
        examples: [
          [genuine, false],
          [Buffer.from("{"), false],
        ],
      },
    );
    expect(statuses).toEqual(new Set(["200", "404"]));
  });

  test("answers any header lines that authenticate as success or as an unknown route", async () => {
    const line = fc
      .string({
        unit: fc.integer({ min: 0x20, max: 0x7e }).map((code) => String.fromCharCode(code)),
        maxLength: 80,
      })
      .map((text) => text.trim());
    const name = fc.constantFrom("Authorization", "Content-Type", "X-Payload-Signature", "Content-Encoding");
    await fc.assert(
      fc.asyncProperty(name, line, async (header, value) => {
        const answer = await exchange(endpoint.port, delivery({ headers: { [header]: value } }));
        expect([success, unknown]).toContain(answer);
      }),
      fuzzRuns(150),
    );
  });
});
