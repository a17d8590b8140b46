// verifyPayload: one line of X-Payload-Signature, accepted only when it is the MAC in strict base64 or in hex.
import { createHmac } from "node:crypto";
import { isGuardError } from "@countersign/core";
import { verifyPayload } from "@countersign/webhook-hmac";
import { assertProperty, assertSame, attempt, words } from "../property.mjs";
import { decodeBase64 } from "../reference/base64.mjs";

const body = Buffer.from('{"webhook_id":"wh_1"}');
const secrets = ["the first secret of this test", "the second secret of this test"];
const macs = secrets.map((secret) => createHmac("sha256", secret).update(body).digest());
const other = createHmac("sha256", "of nobody").update(body).digest();

export const seeds = [
  ...macs.flatMap((mac) => [mac.toString("base64"), mac.toString("hex"), ` \t${mac.toString("base64")}\t `]),
  other.toString("base64"),
  other.toString("hex").toUpperCase(),
  macs[0].toString("base64url"),
  "",
];
export const maxLength = 160;
export const dictionary = [
  ...macs.flatMap((mac) => [mac.toString("base64"), mac.toString("hex"), mac.toString("hex").toUpperCase()]),
  " ",
  "\t",
  "\n",
  "\r",
  "\x00",
  "\xa0",
  ...words`
    sha256= v1, = == - _ ,
  `,
];

function readReference(text) {
  const trimmed = text.replace(/^[ \t]+/, "").replace(/[ \t]+$/, "");
  if (/^[0-9a-fA-F]{64}$/.test(trimmed) && !/\n/.test(trimmed)) return Buffer.from(trimmed, "hex");
  const bytes = decodeBase64(trimmed);
  return bytes?.length === 32 ? bytes : undefined;
}

export function run(input) {
  const line = input.toString("latin1");
  const options = { scheme: { header: "X-Payload-Signature", signatureEncodings: ["base64", "hex"] } };
  const { value: verified, error } = attempt(() => verifyPayload(body, line, secrets, options));
  const mac = readReference(line);
  const index = macs.findIndex((one) => mac !== undefined && one.equals(mac));
  if (error !== undefined) {
    assertProperty(isGuardError(error) && error.status === 401, "a refusal is a GuardError with 401", {
      error,
    });
    assertSame(index, -1, "the MAC is accepted");
    const expected = mac === undefined ? "payload-signature-malformed" : "payload-signature-wrong";
    assertSame(error.code, expected, "the code says whether it was a MAC at all");
    return error.code;
  }
  assertSame(verified.secretIndex, index, "only the MAC is accepted, by the position of its secret");
  assertProperty(verified.bytes.equals(body), "the bytes are those of the body");
  return `secret ${index}`;
}
