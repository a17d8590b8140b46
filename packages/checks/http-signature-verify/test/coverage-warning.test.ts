import type { ReceivedRequest } from "@countersign/core";
import {
  httpSignatureVerifier,
  memoryNonceStore,
  type HttpSignatureVerifyOptions,
} from "@countersign/http-signature-verify";
import { afterEach, beforeEach, expect, jest, test } from "@jest/globals";
import { servicePublicPem } from "@countersign/test-support/signers/test-keys.ts";
import { hearNotices } from "./live-keys-bench.ts";

let notices: ReturnType<typeof hearNotices>;
let warnings: ReturnType<typeof jest.spyOn>;

beforeEach(() => {
  notices = hearNotices();
  warnings = jest.spyOn(process, "emitWarning").mockImplementation(() => undefined);
});
afterEach(() => {
  notices.stop();
  warnings.mockRestore();
});

const unsigned = (method: string): ReceivedRequest => ({
  method,
  target: "/refunds",
  rawHeaders: [],
  scheme: "https",
  clientAddress: "192.0.2.1",
  body: () => Promise.resolve(Buffer.from("{}")),
});

/** What is said by one check that refuses these requests. */
async function saidOf(
  options: Partial<HttpSignatureVerifyOptions>,
  methods: readonly string[],
): Promise<readonly string[]> {
  const verify = httpSignatureVerifier({
    keys: { "service-1": servicePublicPem },
    nonces: memoryNonceStore(),
    ...options,
  });
  for (const method of methods) {
    // oxlint-disable-next-line no-await-in-loop -- a first one and later ones
    await expect(verify(unsigned(method))).rejects.toMatchObject({ code: "signature-missing", status: 401 });
  }
  expect(warnings).toHaveBeenCalledTimes(notices.heard.length);
  expect(
    notices.heard.filter(
      ({ guard, code }) => `${guard} ${code}` !== "httpSignatureVerify signature-covers-little",
    ),
  ).toEqual([]);
  return notices.heard.map(({ message }) => /does not cover ([^,]*)/.exec(message)?.[1] ?? message);
}

test.each<[string, Partial<HttpSignatureVerifyOptions>, string]>([
  ["a method", { requiredComponents: ["@path", "content-type", "content-digest"] }, "its method"],
  ["a path", { requiredComponents: ["@method", "content-digest"] }, "its path"],
  ["a body", { allowUnsignedBody: true }, "its body"],
  [
    "all of them",
    { requiredComponents: ["date"], allowUnsignedBody: true },
    "its method and its path and its body",
  ],
])("options that let %s be exchanged are told at the first request, once", async (_name, options, left) => {
  expect(await saidOf(options, ["POST", "POST", "PUT"])).toEqual([left]);
});

test.each<[string, Partial<HttpSignatureVerifyOptions>]>([
  ["the defaults", {}],
  [
    "the target URI in place of the path",
    { requiredComponents: ["@method", "@target-uri"], origin: "https://pay.example" },
  ],
])("nothing is said of %s", async (_name, options) => {
  expect(await saidOf(options, ["POST"])).toEqual([]);
});

test("nothing is said before a request that may change something", async () => {
  const options = { requiredComponents: ["date"], allowUnsignedBody: true };
  expect(await saidOf(options, ["GET", "HEAD", "OPTIONS"])).toEqual([]);
});
