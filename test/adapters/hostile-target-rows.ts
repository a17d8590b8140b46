// Targets and servers: what a router, a proxy and a verifier could read in two ways.
import type { HttpSignatureVerifyOptions } from "@countersign/http-signature-verify";
import type { WireRequest } from "../support/servers/http-client.ts";
import { samplePath } from "../support/signers/independent-signer.ts";
import { problem } from "./answers.ts";
import { accepted, policyScene, signOrder, unauthorized, withLines } from "./policy-scene.ts";
import type { Row } from "./row.ts";

const scene = policyScene();

/** Targets that two readers could take for two paths, each rightly signed as it is sent; further ones are vectors. */
const doubtful = [
  "//api/v1/transaction",
  "/api/../v1/transaction",
  "/api/v1/%2e%2e/transaction",
  "/api\\v1",
  "/api/v1#a",
];
/** What has one reading: the bytes of the wire. A router that decodes them has no other path in the signature. */
const plain = ["/api/v1%2Ftransaction", "/api/v1%5Ctransaction", "/api//v1", "/%00"];
const normalised = { why: "a Request has its URL normalised", answer: "unsendable" } as const;
const paths: readonly Row[] = [
  ...doubtful.map((path): Row => ({
    title: `the target ${path}`,
    scene,
    request: () => signOrder({ path: path.includes("#") ? path : `${path}?id=7` }),
    answer: unauthorized,
    code: "target-invalid",
    except: path.startsWith("//") || path.includes("#") ? {} : { fetch: normalised },
  })),
  ...plain.map((path): Row => ({
    title: `the target ${path}, signed as it is`,
    scene,
    request: () => signOrder({ path }),
    answer: accepted,
  })),
  ...plain.slice(0, 2).map((path): Row => ({
    title: `the target ${path}, signed as it is decoded`,
    scene,
    request: () => ({
      ...signOrder({ path: decodeURIComponent(path).replace("\\", "/") }),
      path: `${path}?id=7`,
    }),
    answer: unauthorized,
    code: "signature-mismatch",
  })),
];

const authority: HttpSignatureVerifyOptions["requiredComponents"] = [
  "@method",
  "@authority",
  "@target-uri",
  "content-digest",
];
const origin = "https://pay.example";
const hosted = (host: string, ...lines: string[]): WireRequest => {
  const uri = `https://${host}${samplePath}?id=7`;
  return withLines(
    signOrder({
      further: [
        ['"@authority"', host],
        ['"@target-uri"', uri],
      ],
    }),
    ...lines,
  );
};
const hosts: readonly Row[] = (
  [
    ["a request for the origin", () => hosted("pay.example"), undefined],
    ["a request for another host", () => hosted("other.example"), "signature-mismatch"],
    [
      "a request for a host in X-Forwarded-Host",
      () => hosted("other.example", "X-Forwarded-Host", "other.example"),
      "signature-mismatch",
    ],
    [
      "a request for a host in Forwarded",
      () => hosted("other.example", "Forwarded", "host=other.example"),
      "signature-mismatch",
    ],
    ["a request for the origin in capitals", () => hosted("PAY.example"), "signature-mismatch"],
  ] as const
).map(([title, request, code]): Row => ({
  title,
  scene: policyScene({ requiredComponents: authority, origin }),
  request,
  answer: code === undefined ? accepted : unauthorized,
  ...(code !== undefined && { code }),
}));

/** Without an origin the server is what the caller names, and the scheme that of the socket: nothing else that the caller says. */
const withoutHost = {
  why: "no Host line is there",
  answer: unauthorized,
  code: "covered-field-missing",
} as const;
const unnamed: readonly Row[] = (
  [
    ["the scheme of the socket", '"@scheme"', "http", [], undefined],
    ["another scheme", '"@scheme"', "https", [], "signature-mismatch"],
    [
      "a scheme in X-Forwarded-Proto",
      '"@scheme"',
      "https",
      ["X-Forwarded-Proto", "https"],
      "signature-mismatch",
    ],
    [
      "a server in X-Forwarded-Host",
      '"@authority"',
      "other.example",
      ["X-Forwarded-Host", "other.example"],
      "signature-mismatch",
    ],
  ] as const
).map(([title, identifier, value, lines, code]): Row => ({
  title: `${title}, without an origin`,
  scene,
  request: () => withLines(signOrder({ further: [[identifier, value]] }), ...lines),
  answer: code === undefined ? accepted : unauthorized,
  ...(code !== undefined && { code }),
  except: identifier === '"@authority"' ? { fetch: withoutHost } : {},
}));

/** RFC 9112 section 3.2. No component of these orders depends on Host; a server that sends the first beside its own Host has three. */
const repeated: readonly Row[] = (
  [
    ["two Host lines", ["Host", "a.example", "host", "b.example"]],
    ["one Host line twice", ["Host", "a.example", "Host", "a.example"]],
  ] as const
).map(([title, lines]): Row => ({
  title,
  scene,
  request: () => withLines(signOrder(), ...lines),
  answer: problem(400, { code: "host-repeated" }),
  code: "host-repeated",
}));

export const targetRows: readonly Row[] = [...paths, ...hosts, ...unnamed, ...repeated];
