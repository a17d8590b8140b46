import { describe, expect, test } from "@jest/globals";
import * as fc from "fast-check";
import { buildPayoutRequest, generateKeyPair } from "../../src/sandbox/index.ts";
import { importPrivateKey } from "../../src/internal.ts";
import { tamperedParts } from "../../src/sandbox/tamper.ts";
import { parsePayoutUrl } from "../../src/sandbox/payout-url.ts";
import { tamperBody } from "../../src/sandbox/tamper.ts";
import { codePoint } from "@countersign/test-support/runs/code-point.ts";
import { fuzzRuns } from "@countersign/test-support/runs/share.ts";

const pair = generateKeyPair();
const privateKey = importPrivateKey(pair.privateKeyPem);

describe("properties", () => {
  test("every tampering makes another request, and JSON stays JSON", () => {
    fc.assert(
      fc.property(fc.json(), fc.constantFrom(...tamperedParts), (bodyText, tamper) => {
        const options = { url: "http://h/pay", bodyText, privateKey, keyid: "k", created: 1, nonce: "n" };
        const [good, bad] = [buildPayoutRequest(options), buildPayoutRequest({ ...options, tamper })];
        expect({ ...bad.headers, body: bad.bodyBytes }).not.toEqual({
          ...good.headers,
          body: good.bodyBytes,
        });
        expect(() => JSON.parse(bad.bodyBytes.toString("utf8")) as unknown).not.toThrow();
      }),
      fuzzRuns(200),
    );
  });

  test("tamperBody changes any bytes", () => {
    fc.assert(
      fc.property(fc.uint8Array(), (bytes) => !tamperBody(Buffer.from(bytes)).equals(bytes)),
      fuzzRuns(500),
    );
  });

  test("a URL is parsed with its target unchanged, or refused with a TypeError", () => {
    const anyUrl = fc.oneof(
      fc.webUrl({ withQueryParameters: true }),
      fc.string({ unit: codePoint }).map((tail) => `http://h/${tail}`),
      fc.string(),
    );
    fc.assert(
      fc.property(anyUrl, (url) => {
        try {
          const { target } = parsePayoutUrl(url);
          expect(url.endsWith(target) || target === "/" || url.endsWith(target.slice(1))).toBe(true);
        } catch (error) {
          expect(error).toBeInstanceOf(TypeError);
        }
      }),
      fuzzRuns(500),
    );
  });
});
