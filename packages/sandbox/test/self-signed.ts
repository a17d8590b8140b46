import { generateKeyPairSync, randomBytes, sign } from "node:crypto";

/** A fresh certificate for 127.0.0.1 that signs itself, as DER built by hand (RFC 5280 section 4.1): no fixture that expires. */
export function selfSignedCertificate(): { readonly key: string; readonly cert: string } {
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "prime256v1" });
  const algorithm = sequence(oid(0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02));
  const name = sequence(
    tlv(0x31, sequence(oid(0x55, 0x04, 0x03), tlv(0x0c, Buffer.from("countersign test")))),
  );
  const subjectAltName = sequence(tlv(0x87, Buffer.from([127, 0, 0, 1])));
  const toBeSigned = sequence(
    tlv(0xa0, tlv(0x02, Buffer.from([2]))),
    tlv(0x02, Buffer.concat([Buffer.from([1]), randomBytes(8)])),
    algorithm,
    name,
    sequence(utcTime(Date.now() - 86_400_000), utcTime(Date.now() + 86_400_000)),
    name,
    publicKey.export({ type: "spki", format: "der" }),
    tlv(0xa3, sequence(sequence(oid(0x55, 0x1d, 0x11), tlv(0x04, subjectAltName)))),
  );
  const signature = sign("sha256", toBeSigned, privateKey);
  const der = sequence(toBeSigned, algorithm, tlv(0x03, Buffer.concat([Buffer.from([0]), signature])));
  const lines = der.toString("base64").match(/.{1,64}/g) ?? [];
  return {
    key: privateKey.export({ type: "pkcs8", format: "pem" }) as string,
    cert: ["-----BEGIN CERTIFICATE-----", ...lines, "-----END CERTIFICATE-----", ""].join("\n"),
  };
}

function tlv(tag: number, content: Buffer): Buffer {
  const { length } = content;
  const size =
    length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), content]);
}

function sequence(...parts: Buffer[]): Buffer {
  return tlv(0x30, Buffer.concat(parts));
}

function oid(...bytes: number[]): Buffer {
  return tlv(0x06, Buffer.from(bytes));
}

function utcTime(epochMs: number): Buffer {
  const digits = new Date(epochMs).toISOString().replace(/[-:T]|\.\d+/g, "");
  return tlv(0x17, Buffer.from(digits.slice(2)));
}
