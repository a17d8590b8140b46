import { test } from "@jest/globals";
import { array, assert, asyncProperty, constantFrom, integer, oneof, string, tuple } from "fast-check";
import { fuzzRuns } from "@countersign/test-support/runs/fuzz-runs.ts";
import {
  explainAddress,
  explainBasicAuth,
  explainDigest,
  explainHmac,
  explainPayload,
  type Explanation,
} from "../dist/index.js";

const text = oneof(string({ unit: "binary", maxLength: 80 }), string({ maxLength: 80 }));
const names = constantFrom(
  "Content-Digest",
  "X-Payload-Signature",
  "Authorization",
  "X-Forwarded-For",
  "Digest",
  "Stripe-Signature",
);
const headers = array(
  tuple(
    names,
    oneof(
      text,
      text.map((each) => `Basic ${Buffer.from(each).toString("base64")}`),
    ),
  ),
  {
    maxLength: 4,
  },
).map((lines) => lines.flat());
const bytes = text.map((content) => Buffer.from(content));

function assertShowable({ what, sentence, details }: Explanation): void {
  for (const shown of [what, sentence, ...details]) {
    if (!/^[\x20-\x7e]*$/.test(shown) || shown.length > 710) throw new Error(JSON.stringify(shown));
  }
}

test("whatever the request is, it gets an explanation that can be shown", async () => {
  await assert(
    asyncProperty(
      headers,
      bytes,
      text,
      integer({ min: 0, max: 3 }),
      async (rawHeaders, body, pointer, trustProxy) => {
        assertShowable(await explainDigest({ rawHeaders }, body));
        assertShowable(await explainHmac({ rawHeaders }, body, { secrets: ["secret"] }));
        assertShowable(await explainHmac({ rawHeaders }, body, { secrets: ["secret"], scheme: "stripe" }));
        assertShowable(await explainBasicAuth({ rawHeaders }, [{ username: "a", password: "b" }]));
        assertShowable(explainAddress({ rawHeaders, peer: pointer, trustProxy, allow: ["192.0.2.1"] }));
        for (const code of ["required", "wrong-type", "empty"]) {
          assertShowable(explainPayload(body, [{ pointer, code, detail: pointer }]));
        }
      },
    ),
    fuzzRuns(1000),
  );
});
