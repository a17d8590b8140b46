// TLS over HTTP/2; what else a signature meets there is in test/doors/hostile-http2.test.ts.
import { once } from "node:events";
import {
  connect,
  createSecureServer,
  type Http2ServerRequest,
  type Http2ServerResponse,
  type IncomingHttpHeaders,
} from "node:http2";
import type { AddressInfo } from "node:net";
import { httpSignatureVerify } from "@countersign/http-signature-verify";
import { expect, test } from "@jest/globals";
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

/** The status of one signed request that covers `covered` beyond the components of a payout. */
async function statusOf(
  authority: string,
  covered: readonly (readonly [string, string])[],
): Promise<number | undefined> {
  const verify = httpSignatureVerify(defaults());
  const server = createSecureServer(
    certificate,
    (request: Http2ServerRequest, response: Http2ServerResponse) => {
      // What Node's compatibility API promises to be.
      const [req, res] = [request, response] as unknown as Parameters<typeof verify>;
      verify(req, res, (error) => response.writeHead(error === undefined ? 200 : 500).end());
    },
  );
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const session = connect(`https://127.0.0.1:${port}`, { ca: certificate.cert });
  try {
    const { headers } = signRequest({ path: samplePath, body, covered: [...payout, ...covered] });
    const fields: Record<string, string> = {};
    for (let index = 0; index < headers.length; index += 2)
      fields[headers[index] ?? ""] = headers[index + 1] ?? "";
    const lines = { ":method": "POST", ":path": samplePath, ":authority": authority };
    const stream = session.request({ ...lines, ...fields });
    stream.end(body);
    const [response] = (await once(stream, "response")) as [IncomingHttpHeaders & { ":status"?: number }];
    stream.resume();
    await once(stream, "close");
    return response[":status"];
  } finally {
    session.close();
    server.close();
  }
}

test.each<[string, string, readonly (readonly [string, string])[]]>([
  ["@authority with the default port", "pay.example:443", [['"@authority"', "pay.example"]]],
  [
    "@scheme and @target-uri",
    "pay.example",
    [
      ['"@scheme"', "https"],
      ['"@target-uri"', `https://pay.example${samplePath}`],
    ],
  ],
])("httpSignatureVerify over HTTP/2 with TLS takes %s", async (_title, authority, covered) => {
  expect(await statusOf(authority, covered)).toBe(200);
});
