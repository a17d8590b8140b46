import { once } from "node:events";
import {
  connect,
  createSecureServer,
  createServer,
  type Http2ServerRequest,
  type Http2ServerResponse,
  type IncomingHttpHeaders,
} from "node:http2";
import type { AddressInfo } from "node:net";
import { isGuardError } from "@countersign/core";
import { guardErrors } from "@countersign/express";
import { httpSignatureVerify, type HttpSignatureVerifyOptions } from "@countersign/http-signature-verify";
import { describe, expect, test } from "@jest/globals";
import { selfSignedCertificate } from "@countersign/test-support/servers/certificates.ts";
import {
  samplePath,
  sha256Field,
  signRequest,
} from "@countersign/test-support/signers/independent-signer.ts";
import { defaults } from "./platform.ts";

const body = "{}";
const payout = [
  ['"@method"', "POST"],
  ['"@path"', samplePath],
  ['"content-type"', "application/json"],
  ['"content-digest"', sha256Field(Buffer.from(body))],
] as const;
const certificate = selfSignedCertificate();

interface Exchange {
  readonly secure?: boolean | undefined;
  readonly options?: Partial<HttpSignatureVerifyOptions> | undefined;
  /** Components that are covered beyond those of a payout, with the values that are signed. */
  readonly covered?: readonly (readonly [string, string])[] | undefined;
  /** Pseudo-header and other lines beyond those of the signer. */
  readonly lines: Readonly<Record<string, string>>;
}

/** The status of one signed request over HTTP/2, with the code of a refusal. */
async function ask({ secure = false, options, covered = [], lines }: Exchange): Promise<(number | string)[]> {
  const codes: string[] = [];
  const verify = httpSignatureVerify({ ...defaults(), ...options });
  const answer = guardErrors({
    onReject: (error) => void codes.push(isGuardError(error) ? error.code : "?"),
  });
  const onRequest = (request: Http2ServerRequest, response: Http2ServerResponse): void => {
    // What Node's compatibility API promises to be.
    const [req, res] = [request, response] as unknown as Parameters<typeof verify>;
    verify(req, res, (error) => {
      if (error === undefined) res.end();
      else answer(error, req, res, () => res.writeHead(500).end());
    });
  };
  const server = secure ? createSecureServer(certificate, onRequest) : createServer(onRequest);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const session = connect(`${secure ? "https" : "http"}://127.0.0.1:${port}`, { ca: certificate.cert });
  try {
    const { headers } = signRequest({ path: samplePath, body, covered: [...payout, ...covered] });
    const fields: Record<string, string> = {};
    for (let index = 0; index < headers.length; index += 2)
      fields[headers[index] ?? ""] = headers[index + 1] ?? "";
    const stream = session.request({ ":method": "POST", ":path": samplePath, ...fields, ...lines });
    stream.end(body);
    const [response] = (await once(stream, "response")) as [IncomingHttpHeaders & { ":status"?: number }];
    stream.resume();
    await once(stream, "close");
    return [response[":status"] ?? 0, ...codes];
  } finally {
    session.close();
    server.close();
  }
}

const authority = (value: string) => [['"@authority"', value]] as const;

describe("httpSignatureVerify over HTTP/2", () => {
  test.each<[string, Exchange]>([
    ["a payout without Host", { lines: { ":authority": "pay.example" } }],
    [
      "@authority by :authority",
      { lines: { ":authority": "Pay.example" }, covered: authority("pay.example") },
    ],
    [
      "@authority with the default port of TLS",
      { secure: true, lines: { ":authority": "pay.example:443" }, covered: authority("pay.example") },
    ],
    [
      "@scheme and @target-uri of TLS",
      {
        secure: true,
        lines: { ":authority": "pay.example" },
        covered: [
          ['"@scheme"', "https"],
          ['"@target-uri"', `https://pay.example${samplePath}`],
        ],
      },
    ],
    [
      "@authority by the configured origin behind a proxy",
      {
        options: { origin: "https://pay.example" },
        lines: { ":authority": "10.0.0.5" },
        covered: authority("pay.example"),
      },
    ],
  ])("takes %s", async (_title, exchange) => {
    expect(await ask(exchange)).toEqual([200]);
  });

  test.each<[string, string, Exchange]>([
    [
      "Host and :authority of two servers, signed for :authority",
      "authority-conflict",
      { lines: { ":authority": "pay.example", host: "other.example" }, covered: authority("pay.example") },
    ],
    [
      "Host and :authority of two servers beside an origin",
      "authority-conflict",
      {
        options: { origin: "https://pay.example" },
        lines: { ":authority": "pay.example", host: "other.example" },
      },
    ],
  ])("refuses %s (%s)", async (_title, code, exchange) => {
    expect(await ask(exchange)).toEqual([401, code]);
  });
});
