import { test } from "@jest/globals";
import { isGuardError } from "@countersign/core";
import { verifyHttpSignature } from "@countersign/http-signature-verify";
import {
  asyncProperty,
  assert,
  constantFrom,
  integer,
  oneof,
  record,
  string,
  array,
  tuple,
} from "fast-check";
import { codePoint } from "@countersign/test-support/runs/code-point.ts";
import { fuzzRuns } from "@countersign/test-support/runs/share.ts";
import {
  explainAddress,
  explainBasicAuth,
  explainDigest,
  explainHmac,
  explainPayload,
  explainSignature,
  knownBody,
  type Explanation,
  type SignatureExplanation,
} from "../../dist/explain/index.js";
import { mistakes } from "./mistakes.ts";
import { mistaken, now, verifier } from "./signed-with-mistake.ts";

const rows = Object.values(mistakes);
const text = oneof(
  string({ unit: codePoint, maxLength: 60 }),
  string({ maxLength: 60 }),
  string({ unit: "grapheme", maxLength: 20 }),
);
const path = array(constantFrom("a", "api", "%20", "x.y", "~", "0"), { minLength: 1, maxLength: 6 }).map(
  (parts) => `/${parts.join("/")}`,
);

/** What must hold of every explanation. */
function assertShowable(explained: Explanation & Partial<SignatureExplanation>): void {
  const { what, sentence, details, expectedBase = "", difference } = explained;
  for (const shown of [what, sentence, ...details, expectedBase, difference?.expected ?? ""]) {
    if (!/^[\x20-\x7e\n]*$/.test(shown)) throw new Error(`not printable: ${JSON.stringify(shown)}`);
    if (shown.length > 60_000) throw new Error("not capped");
  }
  for (const shown of [sentence, ...(expectedBase === "" ? details : [])]) {
    if (shown.length > 710 || shown.includes("\n")) throw new Error("no sentence");
  }
  if (!/^[a-z0-9+-]+$/.test(what)) throw new Error(`no identifier: ${what}`);
}

async function isAdmitted(request: ReturnType<typeof mistaken>): Promise<boolean> {
  const { method, target, rawHeaders, body = new Uint8Array(), scheme = "https" } = request;
  const { keys, clock } = verifier;
  try {
    await verifyHttpSignature(
      { method, target, rawHeaders, scheme, clientAddress: undefined, body: async () => body },
      { keys, clock, nonces: { claim: () => "fresh" } },
    );
    return true;
  } catch (error) {
    if (isGuardError(error)) return false;
    throw error;
  }
}

test("an honest request verifies, whatever it holds", async () => {
  await assert(
    asyncProperty(
      path,
      string({ unit: codePoint, maxLength: 200 }),
      integer({ min: 0, max: 50 }),
      async (target, body, age) => {
        const request = mistaken({ plan: { path: target, body, created: now - age } });
        const explained = await explainSignature(request, verifier);
        assertShowable(explained);
        if (explained.what !== "verifies") throw new Error(explained.sentence);
      },
    ),
    fuzzRuns(100),
  );
});

test("says verifies exactly of what the check admits", async () => {
  const changes = record({
    row: integer({ min: 0, max: rows.length - 1 }),
    method: oneof(constantFrom("POST", "post", "PUT"), text),
    target: oneof(path, text),
    name: constantFrom("signature", "signature-input", "content-digest", "content-type", "host", "x"),
    value: text,
    at: integer({ min: 0, max: 12 }),
    how: constantFrom("none", "replace", "insert", "target", "method", "cut"),
  });
  await assert(
    asyncProperty(changes, async ({ row, method, target, name, value, at, how }) => {
      const request = mistaken(rows[row]);
      const lines = [...request.rawHeaders];
      if (how === "replace") lines[at * 2 + 1] = value;
      if (how === "insert") lines.push(name, value);
      if (how === "cut") lines[at * 2 + 1] = (lines[at * 2 + 1] ?? "").slice(at);
      const changed = {
        ...request,
        rawHeaders: Array.from(lines, (each) => each ?? ""),
        ...(how === "target" && { target }),
        ...(how === "method" && { method }),
      };
      const explained = await explainSignature(changed, { ...verifier, maxAttempts: 20 });
      assertShowable(explained);
      if ((explained.what === "verifies") !== (await isAdmitted(changed)))
        throw new Error(explained.sentence);
      const unread = { ...changed, body: undefined };
      if (knownBody(unread) !== undefined) return;
      const withoutBody = await explainSignature(unread, { ...verifier, maxAttempts: 20 });
      assertShowable(withoutBody);
      const isLeftOpen = withoutBody.what === "body-not-known" || withoutBody.code === undefined;
      const isBodyAlone = explained.code === undefined || explained.code === "content-digest-mismatch";
      if (isLeftOpen !== isBodyAlone) throw new Error(`${explained.sentence} ${withoutBody.sentence}`);
    }),
    fuzzRuns(300),
  );
});

test("explains garbage without throwing", async () => {
  const garbage = record({
    method: text,
    target: text,
    rawHeaders: array(
      tuple(
        oneof(constantFrom("Signature-Input", "Signature", "Content-Digest", "Authorization", "Host"), text),
        text,
      ),
      { maxLength: 6 },
    ).map((lines) => lines.flat()),
    body: string({ unit: codePoint, maxLength: 100 }).map((content) => Buffer.from(content)),
    signerBase: text,
  });
  await assert(
    asyncProperty(garbage, async ({ signerBase, ...request }) => {
      const explained = await explainSignature(request, { ...verifier, signerBase, maxAttempts: 30 });
      assertShowable(explained);
      if (explained.what === "verifies") throw new Error("garbage verifies");
    }),
    fuzzRuns(1000),
  );
});

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

test("explains whatever other checks refuse, showably", async () => {
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
