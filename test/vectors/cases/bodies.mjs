import { createHash } from "node:crypto";
import { fourNames, now, payment, vector } from "../hand/vector.mjs";

const body = Buffer.from('{"hello": "world"}');
const base64 = (bytes) => Buffer.from(bytes).toString("base64");
const of = (algorithm, bytes = body) =>
  `${algorithm}=:${createHash(algorithm.replace("-", "")).update(bytes).digest("base64")}:`;
const mismatch = { code: "content-digest-mismatch" };
const invalid = { code: "content-digest-invalid" };
/** A payment with this Content-Digest, which is signed, and this body. */
function paid(id, shows, field, { bytes = body, message = {}, ...more } = {}) {
  const headers = payment.headers.map((line) => (line[0] === "Content-Digest" ? [line[0], field] : line));
  return vector(id, shows, {
    message: { headers, body: base64(bytes), ...message },
    covered: [
      ['"@method"', "POST"],
      ['"@path"', "/api/v1/transaction"],
      ['"content-type"', "application/json"],
      ['"content-digest"', field],
    ],
    ...more,
  });
}

export const theme = "Bodies and their Content-Digest (RFC 9530), which the signature covers";
export const cases = [
  paid("digest-sha-256", "The digest is that of the bytes of the body.", of("sha-256")),
  paid("digest-sha-512", "sha-512 is taken too.", of("sha-512")),
  paid("digest-both", "Several digests, all of which match.", `${of("sha-256")}, ${of("sha-512")}`),
  paid(
    "digest-unknown-beside",
    "A digest by an unknown algorithm beside one that is known is not looked at.",
    `unixsum=:AAAA:, ${of("sha-256")}`,
  ),
  paid("digest-empty-body", "An empty body has a digest.", of("sha-256", ""), { bytes: Buffer.alloc(0) }),
  paid("digest-binary", "Bytes that are no text.", of("sha-256", Buffer.from([0, 255, 10, 13])), {
    bytes: Buffer.from([0, 255, 10, 13]),
  }),
  paid("digest-other-body", "Another body, and the signature is right.", of("sha-256"), {
    bytes: Buffer.from('{"hello": "there"}'),
    ...mismatch,
  }),
  paid("digest-space", "A body with a space less is another one.", of("sha-256"), {
    bytes: Buffer.from('{"hello":"world"}'),
    ...mismatch,
  }),
  paid("digest-line-feed", "A body with a line feed behind it is another one.", of("sha-256"), {
    bytes: Buffer.concat([body, Buffer.from("\n")]),
    ...mismatch,
  }),
  paid("digest-cut", "A body that was cut.", of("sha-256"), { bytes: body.subarray(0, -1), ...mismatch }),
  paid("digest-removed-body", "A body that was taken away.", of("sha-256"), {
    bytes: Buffer.alloc(0),
    ...mismatch,
  }),
  paid(
    "digest-one-of-two",
    "Several digests, one of which does not match.",
    `${of("sha-256")}, ${of("sha-512", "other")}`,
    mismatch,
  ),
  paid(
    "digest-short",
    "A digest of fewer bytes.",
    `sha-256=:${createHash("sha256").update(body).digest().subarray(0, 16).toString("base64")}:`,
    invalid,
  ),
  paid(
    "digest-swapped",
    "The digest of another algorithm.",
    of("sha-512").replace("sha-512", "sha-256"),
    invalid,
  ),
  paid(
    "digest-hex",
    "A digest in hex.",
    `sha-256=:${base64(createHash("sha256").update(body).digest("hex"))}:`,
    invalid,
  ),
  paid(
    "digest-unknown",
    "A digest by an algorithm that is not taken, alone.",
    `md5=:${createHash("md5").update(body).digest("base64")}:`,
    { code: "content-digest-unsupported" },
  ),
  paid(
    "digest-string",
    "A digest that is a string.",
    `sha-256="${createHash("sha256").update(body).digest("base64")}"`,
    invalid,
  ),
  paid(
    "digest-unpadded",
    "A digest whose base64 is not canonical.",
    of("sha-256").replace("=:", "#").replace("=:", ":").replace("#", "=:"),
    invalid,
  ),
  paid("digest-twice", "A digest that comes twice.", `${of("sha-256")}, ${of("sha-256")}`, invalid),
  paid("digest-changed", "A digest that was exchanged with the body.", of("sha-256"), {
    bytes: Buffer.from("other"),
    arrives: (message) => ({
      ...message,
      headers: message.headers.map((line) =>
        line[0] === "Content-Digest" ? [line[0], of("sha-256", "other")] : line,
      ),
    }),
    code: "signature-mismatch",
  }),
  vector("digest-of-answer", "The body of an answer.", {
    message: {
      status: 200,
      headers: [["Content-Digest", of("sha-512")]],
      body: base64(body),
      request: payment,
    },
    covered: [
      ['"@status"', "200"],
      ['"content-digest"', of("sha-512")],
    ],
    policy: { requiredComponents: ["@status", "content-digest"] },
  }),
  vector("digest-of-other-answer", "Another body of an answer.", {
    message: {
      status: 200,
      headers: [["Content-Digest", of("sha-512")]],
      body: base64("other"),
      request: payment,
    },
    covered: [
      ['"@status"', "200"],
      ['"content-digest"', of("sha-512")],
    ],
    policy: { requiredComponents: ["@status", "content-digest"] },
    ...mismatch,
  }),
  paid("digest-expired", "A signature that has expired is refused, whatever the body.", of("sha-256"), {
    time: now + 61,
    policy: { requiredComponents: fourNames },
    code: "signature-expired",
  }),
];
