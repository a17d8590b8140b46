import { afterEach, describe, expect, test } from "@jest/globals";
import { memoryNonceStore, type HttpSignatureVerifyOptions } from "@countersign/http-signature-verify";
import express from "express";
import {
  samplePath,
  signRequest,
  type SigningPlan,
} from "@countersign/test-support/signers/independent-signer.ts";
import { exchange } from "@countersign/test-support/servers/wire.ts";
import { startPlatform, type Platform } from "./platform.ts";

let platform: Platform;
afterEach(() => platform.close());

const policy: Partial<HttpSignatureVerifyOptions> = {
  nonces: memoryNonceStore(),
  requiredComponents: ["@method"],
  fieldTypes: { "x-dict": "dictionary" },
  allowUnsignedQuery: true,
};

interface Wire {
  readonly target?: string;
  /** Lines of the head as they go over the wire, behind those of the signature. */
  readonly lines?: readonly string[];
  /** Trailer lines, behind a body in one chunk. */
  readonly trailers?: readonly string[];
}

/** The status over a socket, and the code in the log. */
async function sent(covered: SigningPlan["covered"], wire: Wire = {}): Promise<readonly [number, string?]> {
  platform = await startPlatform(express, policy);
  const { headers } = signRequest({ body: "", covered: [['"@method"', "POST"], ...(covered ?? [])] });
  const head = headers.flatMap((name, index) => (index % 2 === 0 ? [`${name}: ${headers[index + 1]}`] : []));
  const { target = samplePath, lines = [], trailers } = wire;
  const framing = trailers === undefined ? "Content-Length: 0" : "Transfer-Encoding: chunked";
  const start = [`POST ${target} HTTP/1.1`, "Host: a.example", "Connection: close", framing];
  const body = trailers === undefined ? "" : ["0", ...trailers, "", ""].join("\r\n");
  // As bytes: a socket would write what is one byte here as the two of UTF-8.
  const request = Buffer.from([...start, ...head, ...lines, "", body].join("\r\n"), "latin1");
  const answer = await exchange(platform.port, request);
  const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(answer)?.[1]);
  return platform.codes[0] === undefined ? [status] : [status, platform.codes[0]];
}

describe("components with parameters, byte for byte over a socket", () => {
  test.each<[string, SigningPlan["covered"], Wire]>([
    [
      "a dictionary over two lines",
      [['"x-dict";sf', "a=1, b=(1 2);x"]],
      { lines: ["X-Dict:   a=1", "x-dict: b=( 1   2 );x=?1   "] },
    ],
    ["a member of it", [['"x-dict";key="b"', "?1;y"]], { lines: ["X-Dict: a=1,\tb;y"] }],
    ["bytes beyond ASCII", [['"x-raw";bs', ":Y2Fm6Q==:"]], { lines: ["X-Raw: caf\u00e9"] }],
    ["two lines with commas", [['"x-raw";bs', ":YSwgYg==:, :Yw==:"]], { lines: ["X-Raw: a, b", "X-Raw: c"] }],
    ["a query parameter", [['"@query-param";name="a"', "%20%25"]], { target: `${samplePath}?b&a=+%25` }],
  ])("verify: %s", async (_title, covered, wire) => {
    expect(await sent(covered, wire)).toEqual([200]);
  });

  test.each<[string, string, SigningPlan["covered"], Wire]>([
    ["a trailer", "component-parameter-unsupported", [['"x-end";tr', "1"]], { trailers: ["X-End: 1"] }],
    [
      "a trailer in place of a field",
      "covered-field-missing",
      [['"x-end"', "1"]],
      { trailers: ["X-End: 1"] },
    ],
    [
      "a key twice",
      "covered-field-invalid",
      [['"x-dict";key="a"', "2"]],
      { lines: ["X-Dict: a=1", "X-Dict: a=2"] },
    ],
    ["an empty dictionary", "covered-field-invalid", [['"x-dict";sf', ""]], { lines: ["X-Dict:"] }],
    [
      "bytes that are not canonical",
      "covered-field-invalid",
      [['"x-dict";key="a"', ":AA==:"]],
      { lines: ["X-Dict: a=:AB==:"] },
    ],
    [
      "one line in place of two",
      "signature-mismatch",
      [['"x-raw";bs', ":YQ==:, :Yg==:"]],
      { lines: ["X-Raw: a, b"] },
    ],
    [
      "a parameter twice",
      "covered-field-repeated",
      [['"@query-param";name="a"', "1"]],
      { target: `${samplePath}?a=1&%61=2` },
    ],
    [
      "a parameter behind a semicolon",
      "covered-field-missing",
      [['"@query-param";name="a"', "1"]],
      { target: `${samplePath}?b=2;a=1` },
    ],
    [
      "bytes that are no UTF-8",
      "covered-field-invalid",
      [['"@query-param";name="a"', "%EF%BF%BD"]],
      { target: `${samplePath}?a=%ff` },
    ],
  ])("are refused: %s", async (_title, code, covered, wire) => {
    expect(await sent(covered, wire)).toEqual([401, code]);
  });
});
