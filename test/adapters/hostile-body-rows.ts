// Bodies, their digests, and the window of a signature.
import { createHash } from "node:crypto";
import type { HttpSignatureVerifyOptions } from "@countersign/http-signature-verify";
import type { WireRequest } from "../support/servers/http-client.ts";
import { sha256Field } from "../support/signers/independent-signer.ts";
import { problem, type ExactAnswer } from "./answers.ts";
import {
  accepted,
  orderComponents,
  policyScene,
  signOrder,
  unauthorized,
  withLines,
  type Covered,
  type OrderPlan,
} from "./policy-scene.ts";
import type { Row } from "./row.ts";

const scene = policyScene();

const big = JSON.stringify({ order: "x".repeat(4_096) });
const tooLarge = problem(413, { code: "body-too-large" });
const encoded = problem(415, { code: "content-encoding-unsupported" }, { "accept-encoding": "identity" });
const withLine = (name: string, value: string, plan?: OrderPlan) => (): WireRequest =>
  withLines(signOrder(plan), name, value);
const readings: readonly (readonly [string, () => WireRequest, ExactAnswer, string])[] = [
  ["a body over the limit", () => signOrder({ body: big }), tooLarge, "body-too-large"],
  [
    "a body over the limit, in chunks",
    withLine("Transfer-Encoding", "chunked", { body: big }),
    tooLarge,
    "body-too-large",
  ],
  ...["gzip", "deflate", "br", "gzip, identity", "aws-chunked"].map(
    (coding) =>
      [
        `the content coding ${coding}`,
        withLine("Content-Encoding", coding),
        encoded,
        "content-encoding-unsupported",
      ] as const,
  ),
  [
    "two transfer codings",
    withLine("Transfer-Encoding", "gzip, chunked"),
    problem(501),
    "transfer-coding-unsupported",
  ],
];

const text = '{"order":7}';
const right = sha256Field(Buffer.from(text));
const sha512 = `sha-512=:${createHash("sha512").update(text).digest("base64")}:`;
const withDigest = (contentDigest: string) => (): WireRequest => signOrder({ contentDigest });
/** The body by another component than the whole of its Content-Digest. */
const partly =
  (identifier: string, value: string, line: readonly string[] = []) =>
  (): WireRequest =>
    withLines(
      signOrder({
        covered: [
          ['"@method"', "POST"],
          [identifier, value],
        ] as Covered,
      }),
      ...line,
    );
const loosely = policyScene({
  requiredComponents: ["@method", ...orderComponents.map(([identifier]) => identifier)],
});
const mismatch = "content-digest-mismatch";
const digests = (
  [
    ["a body in two known digests", withDigest(`${right}, ${sha512}`), undefined],
    ["a right digest beside an unknown one", withDigest(`md5=:AAAA:, ${right}`), undefined],
    [
      "a body in no digest that is known",
      withDigest("md5=:AAAA:, unixsum=:AAAA:"),
      "content-digest-unsupported",
    ],
    [
      "a right digest and one of another body",
      withDigest(`${right}, sha-512=:${Buffer.alloc(64).toString("base64")}:`),
      mismatch,
    ],
    ["an empty digest", withDigest(""), "content-digest-missing"],
    ["another body", () => ({ ...signOrder(), body: Buffer.from('{"order":8}') }), mismatch],
    [
      "a body that was written anew",
      () => ({ ...signOrder(), body: Buffer.from('{ "order": 7 }') }),
      mismatch,
    ],
    ["no body", () => ({ ...signOrder(), body: Buffer.alloc(0) }), mismatch],
  ] satisfies readonly (readonly [string, () => WireRequest, string | undefined])[]
).map(([title, request, code]): Row => judged({ title, scene, request }, code));

const covers = (
  [
    ["a body by its whole digest, strictly", partly('"content-digest";sf', right), undefined],
    [
      "a body by its whole digest, wrapped",
      partly('"content-digest";bs', `:${Buffer.from(right).toString("base64")}:`),
      undefined,
    ],
    [
      "a body by one member of its digest",
      partly('"content-digest";key="sha-256"', right.slice(8)),
      "body-not-covered",
    ],
    [
      "a body by Repr-Digest alone",
      partly('"repr-digest"', right, ["Repr-Digest", right]),
      "body-not-covered",
    ],
    [
      "a body by Content-Length alone",
      partly('"content-length"', String(text.length), ["Content-Length", String(text.length)]),
      "body-not-covered",
    ],
    [
      "a body by what is wanted of a digest",
      partly('"want-content-digest"', "sha-256=1", ["Want-Content-Digest", "sha-256=1"]),
      "body-not-covered",
    ],
  ] satisfies readonly (readonly [string, () => WireRequest, string | undefined])[]
).map(([title, request, code]): Row => judged({ title, scene: loosely, request }, code));

/** Fields of answers, and wishes for them: of a request they say nothing, whatever they hold. */
const unread = [
  ["Accept-Signature", 'a=("@status";req),,;'],
  ["Accept-Signature", `a=(${"(".repeat(500)}`],
  ["Want-Content-Digest", "sha-256=99999999999999999"],
  ["Want-Repr-Digest", "?"],
  ["Repr-Digest", "sha-256=:AAAA:"],
].map(([name = "", value = ""]): Row => ({
  title: `${name} of ${value.slice(0, 30)}, which nothing asks for`,
  scene,
  request: withLine(name, value),
  answer: accepted,
}));

const now = 1_800_000_000;
const at = (seconds: number, more: Partial<HttpSignatureVerifyOptions> = {}) =>
  policyScene({ clock: () => seconds * 1000, ...more });
const lasting: Partial<HttpSignatureVerifyOptions> = {
  requiredParameters: ["keyid", "created"],
  windowSeconds: 10,
};
const bare = { expires: undefined, alg: undefined, nonce: undefined };
const times: readonly Row[] = (
  [
    ["created as far ahead as may be", at(now - 30), {}, undefined],
    ["created a millisecond further ahead", at(now - 30.001), {}, "created-in-future"],
    ["the last moment of a signature", at(now + 60), {}, undefined],
    ["a millisecond after it", at(now + 60.001), {}, "signature-expired"],
    [
      "the last moment of a signature without expires",
      at(now + 10, lasting),
      { parameters: bare },
      undefined,
    ],
    ["a millisecond after that", at(now + 10.001, lasting), { parameters: bare }, "signature-expired"],
    [
      "expires without created, too far ahead",
      at(now, { requiredParameters: ["keyid", "expires"] }),
      { parameters: { ...bare, created: undefined, expires: String(now + 91) } },
      "window-too-long",
    ],
  ] satisfies readonly (readonly [string, Row["scene"], OrderPlan, string | undefined])[]
).map(([title, timed, plan, code]): Row =>
  judged({ title, scene: timed, request: () => signOrder({ created: now, ...plan }) }, code),
);

export const bodyRows: readonly Row[] = [
  ...readings.map(([title, request, answer, code]): Row => ({ title, scene, request, answer, code })),
  ...digests,
  ...covers,
  ...unread,
  ...times,
];

function judged(row: Pick<Row, "title" | "scene" | "request">, code: string | undefined): Row {
  return code === undefined ? { ...row, answer: accepted } : { ...row, answer: unauthorized, code };
}
