import { afterAll, beforeAll, expect, test } from "@jest/globals";
import * as fc from "fast-check";
import { signRequest, withHeader } from "@countersign/test-support/signers/independent-signer.ts";
import { startPlatform, type Platform } from "./platform.ts";
import { fuzzRuns } from "@countersign/test-support/runs/fuzz-runs.ts";

let platform: Platform;
beforeAll(async () => {
  platform = await startPlatform();
});
afterAll(() => platform.close());

// What the HTTP parser of Node lets through in a field value.
const fieldValue = fc.oneof(
  fc.string({ maxLength: 200 }).map((text) => text.replace(/[^\x20-\x7e\xa0-\xff]/g, "")),
  fc
    .array(
      fc.constantFrom('"', "(", ")", ";", "=", ",", ":", " ", "sig1", "keyid", "@method", "1", "?1", "\\"),
      {
        maxLength: 30,
      },
    )
    .map((parts) => parts.join("")),
);

test.each(["signature-input", "signature", "content-digest", "content-type"])(
  "any value of %s gives the one 401, and never reaches the handler",
  async (name) => {
    await fc.assert(
      fc.asyncProperty(fieldValue, async (value) => {
        const signed = signRequest();
        const headers = withHeader(signed.headers, name, () => value);
        const answer = await platform.send({ ...signed, headers });
        expect(answer).toMatchObject({ status: 401, body: expect.stringContaining("Unauthorized") });
      }),
      fuzzRuns(150),
    );
    expect(platform.reached).toEqual([]);
  },
);

test("any body under a signature over another one gives the one 401", async () => {
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ maxLength: 300 }), async (bytes) => {
      expect((await platform.send({ ...signRequest(), body: Buffer.from(bytes) })).status).toBe(401);
    }),
    fuzzRuns(100),
  );
});
